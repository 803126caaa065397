"""Times of misaligned and strided copies, and of the plain copy that all kernels are compared with."""

from __future__ import annotations

import kernelwatch.benchmarks as kw
from benchmarks.sweeps import (
    COPY_FLAG_SETS,
    DEFAULT_FLAGS,
    FLAG_SETS,
    LARGEST,
    LARGEST_ELEMENTS,
    MATRICES,
    MOVED,
    OFFSETS,
    STRIDES,
)
from kernelwatch.kernel import matrix_copy

#: Reason why a copy of small elements stays far below the peak although no bytes are lost.
_SMALL = (
    "A thread moves one element, so as many elements take as many requests whatever their size: one of a warp asks for "
    "32 bytes of int8, for 128 of float32 and for 512 of complex128. A plain copy moves 16 bytes a thread."
)


class OffsetCopy(kw.BackToBack):
    """Offset copy, DRAM."""

    kernel = "offset_copy"
    param_names = ("offset", "size", "dtype", "flags")
    params = (OFFSETS, (1 << 26,), MOVED, COPY_FLAG_SETS)
    shown = {"offset": 1, "dtype": "float32"}
    note = (
        "A warp whose bytes do not begin at a sector touches one sector more: float32 takes 5 sectors for 4. "
        "So 20 % would be lost if no cache kept the shared one. Caches do: what is lost is less. " + _SMALL
    )


class MatrixSizedCopy(kw.BackToBack):
    """Copies of 12800 x 12800 elements, DRAM."""

    param_names = ("copy", "dtype", "flags")
    params = (
        ("offset_copy offset=0", "offset_copy offset=1", "stride_copy stride=1", "stride_copy stride=2"),
        ("float32",),
        FLAG_SETS,
    )
    fixed = {"size": LARGEST_ELEMENTS}


class StrideCopy(kw.BackToBack):
    """Stride copy, DRAM."""

    kernel = "stride_copy"
    param_names = ("stride", "size", "dtype", "flags")
    params = (STRIDES, (1 << 22,), MOVED, COPY_FLAG_SETS)  # at the largest stride and dtype, arrays take 2 GiB each
    shown = {"stride": 2, "dtype": "float32"}
    note = (
        "Whole sectors of 32 bytes are moved whatever is used of them: half is lost at stride 2. DRAM gives 64 bytes "
        "a miss of L2 by default, so up to half of these are lost, too. " + _SMALL
    )


class StrideCopyFetching32(kw.BackToBack):
    """Stride copy, DRAM, 32 bytes a miss of L2."""

    kernel = "stride_copy"
    param_names = ("stride", "size", "dtype", "flags")
    params = (STRIDES, (1 << 22,), ("float32", "float64"), DEFAULT_FLAGS)
    shown = {"stride": 16, "dtype": "float32"}
    l2_fetch_bytes = 32
    note = "One sector is fetched a miss, not two: as many as are needed."


class StrideCopyFetching64(StrideCopyFetching32):
    """Stride copy, DRAM, 64 bytes a miss of L2."""

    title = "Stride copy, DRAM, 64 bytes a miss of L2"
    l2_fetch_bytes = 64
    note = "Two sectors are fetched a miss, as by default."


class StrideCopyFetching128(StrideCopyFetching32):
    """Stride copy, DRAM, 128 bytes a miss of L2."""

    title = "Stride copy, DRAM, 128 bytes a miss of L2"
    l2_fetch_bytes = 128
    note = "Four sectors are fetched a miss, though one may be needed."


class DeviceCopy(kw.BackToBack):
    """Device copy, DRAM."""

    version = "4"
    kernel = matrix_copy.NAME
    param_names = ("rows x columns", "dtype")
    params = (MATRICES, MOVED)
    shown = {"rows x columns": LARGEST, "dtype": "float32"}
