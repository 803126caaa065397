"""Tensor cores: what a kernel without matrix instructions does not load."""
