"""From revisions and stored files to reviews: this layer loads the values that the layer `review` judges."""
