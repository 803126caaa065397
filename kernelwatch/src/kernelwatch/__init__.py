"""Watches the memory accesses of CUDA kernels over time: what is compiled, counted and timed of each commit."""
