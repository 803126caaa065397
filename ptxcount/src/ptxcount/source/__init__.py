"""CUDA C++ as input: nvcc, declarations, names, types, and kernels of other Python packages."""
