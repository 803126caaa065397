"""The website: this project's pages, published together with asv's."""
