"""A recorder of the launches of any CUDA program, and a comparison of their counts."""
