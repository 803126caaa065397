"""Sources of kernels: nvcc, declarations, names and types of CUDA C++, and kernels of Python packages."""
