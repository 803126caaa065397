"""Four kernels in each of nine tools that compile to PTX, counted for four architectures."""
