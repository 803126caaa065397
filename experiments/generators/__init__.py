"""Four kernels in each language that compiles to PTX, counted for each architecture."""
