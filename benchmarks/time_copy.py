"""Times of misaligned and strided copies, and of the plain copy with which all kernels are compared."""

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

#: Note on small elements: their copies are far below the peak although no bytes are wasted.
_SMALL = (
    "Each thread moves one element, so the number of requests does not depend on the element's size. A request of a "
    "warp is 32 bytes of int8, 128 of float32 or 512 of complex128. The plain copy moves 16 bytes per thread."
)


class OffsetCopy(kw.BackToBack):
    """Offset copy, DRAM."""

    kernel = "offset_copy"
    param_names = ("offset", "size", "dtype", "flags")
    params = (OFFSETS, (1 << 26,), MOVED, COPY_FLAG_SETS)
    shown = {"offset": 1, "dtype": "float32"}
    note = (
        "A warp whose bytes do not begin at a sector accesses one more sector: 5 instead of 4 for float32. "
        "Without caches, this would cost 20 %. Caches keep the shared sector, so the loss is smaller. " + _SMALL
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
    params = (STRIDES, (1 << 22,), MOVED, COPY_FLAG_SETS)  # at the largest stride and dtype, each array has 2 GiB
    shown = {"stride": 2, "dtype": "float32"}
    note = (
        "Only whole sectors of 32 bytes are moved, so half of the bytes are wasted at stride 2. By default, L2 fetches "
        "64 bytes from DRAM per miss, of which up to half are wasted, too. " + _SMALL
    )


class StrideCopyFetching32(kw.BackToBack):
    """Stride copy, DRAM, 32 bytes a miss of L2."""

    kernel = "stride_copy"
    param_names = ("stride", "size", "dtype", "flags")
    params = (STRIDES, (1 << 22,), ("float32", "float64"), DEFAULT_FLAGS)
    shown = {"stride": 16, "dtype": "float32"}
    l2_fetch_bytes = 32
    note = "L2 fetches one sector per miss instead of two, and no unused sector."


class StrideCopyFetching64(StrideCopyFetching32):
    """Stride copy, DRAM, 64 bytes a miss of L2."""

    l2_fetch_bytes = 64
    note = "L2 fetches two sectors per miss, as by default."


class StrideCopyFetching128(StrideCopyFetching32):
    """Stride copy, DRAM, 128 bytes a miss of L2."""

    l2_fetch_bytes = 128
    note = "L2 fetches four sectors per miss, although one may suffice."


class DeviceCopy(kw.BackToBack):
    """Device copy, DRAM."""

    version = "4"
    kernel = matrix_copy.NAME
    param_names = ("rows x columns", "dtype")
    params = (MATRICES, MOVED)
    shown = {"rows x columns": LARGEST, "dtype": "float32"}
