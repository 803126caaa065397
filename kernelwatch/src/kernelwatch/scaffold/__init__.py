"""The search for kernels in a repository, and the classes that `kernelwatch init` writes for them."""
