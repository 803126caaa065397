"""The published site: asv's own pages served without any other host, and this project's pages beside them."""
