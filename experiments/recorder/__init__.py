"""A recorder of the launches of a Python program, and a comparison of their counts."""
