"""CUDA kernels that coalesce their memory accesses well or badly: the thing that the benchmarks measure."""

from __future__ import annotations

from .arrays import offset_copy, stride_copy, transpose
from .catalog import KERNELS
from .dtypes import DTYPES
from .flags import FLAG_SETS

#: How `benchmarks` speaks to this package: raised when an older one must be treated otherwise.
CONTRACT = 2

__all__ = ["CONTRACT", "DTYPES", "FLAG_SETS", "KERNELS", "offset_copy", "stride_copy", "transpose"]
