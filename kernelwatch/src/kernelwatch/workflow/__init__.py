"""From revisions and stored files to reviews: this package loads the values that the package `review` judges."""
