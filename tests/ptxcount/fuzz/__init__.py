"""Random small kernels, run in the executor, as host C++, and on a GPU."""
