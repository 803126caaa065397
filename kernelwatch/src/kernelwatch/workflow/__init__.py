"""The way from revisions and stored files to reviews: everything that loads values for `review` to judge."""
