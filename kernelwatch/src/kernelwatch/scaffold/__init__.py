"""Kernels found in a repository, and the classes written for them."""
