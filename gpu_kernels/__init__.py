"""CUDA kernels that coalesce their memory accesses well or badly. The benchmarks measure them."""

from __future__ import annotations

from .catalog import KERNELS
from .catalog import MIXED as MIXED

#: The version of the interface that `benchmarks` uses. It rises when older packages need another treatment. From 3 on,
#: the rows of `KERNELS` are kernels of kernelwatch, which builds and launches them.
CONTRACT = 3

__all__ = ["CONTRACT", "KERNELS"]
