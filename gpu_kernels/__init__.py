"""CUDA kernels that coalesce their memory accesses well or badly. The benchmarks measure them."""

from __future__ import annotations

from .arrays import offset_copy, stride_copy, transpose
from .catalog import KERNELS
from .dtypes import DTYPES
from .flags import FLAG_SETS

#: The version of the interface that `benchmarks` uses. It is raised when older packages must be treated differently.
CONTRACT = 2

__all__ = ["CONTRACT", "DTYPES", "FLAG_SETS", "KERNELS", "offset_copy", "stride_copy", "transpose"]
