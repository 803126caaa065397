"""Random small kernels, and two other ways to run them: as host C++, and on a GPU."""
