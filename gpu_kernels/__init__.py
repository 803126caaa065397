"""CUDA kernels that coalesce their memory accesses well or badly. The benchmarks measure them."""

from __future__ import annotations

from .catalog import KERNELS
from .catalog import MIXED as MIXED

#: Version of the interface that `benchmarks` uses. It rises when older packages need other treatment. From 3 on, the
#: values of `KERNELS` are `kernelwatch.Kernel` objects, which kernelwatch builds and launches.
CONTRACT = 3

__all__ = ["CONTRACT", "KERNELS"]
