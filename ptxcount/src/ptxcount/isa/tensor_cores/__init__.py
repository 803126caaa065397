"""Tensor cores; imported only for kernels with matrix instructions."""
