"""CUDA kernels that coalesce their memory accesses well or badly: the thing that the benchmarks measure."""

from __future__ import annotations

from gpu_kernels.arrays import offset_copy, stride_copy, transpose
from gpu_kernels.catalog import KERNELS
from gpu_kernels.dtypes import DTYPES
from gpu_kernels.flags import FLAG_SETS

__all__ = ["DTYPES", "FLAG_SETS", "KERNELS", "offset_copy", "stride_copy", "transpose"]
