"""The axes of the benchmarks: literal lists, nothing computed.

asv stores results by position in these lists: append, never reorder or remove. A new value keeps the history; a new
axis, or another order, loses it.
"""

from __future__ import annotations

TRANSPOSES = [
    "transpose_read_coalesced",
    "transpose_write_coalesced",
    "transpose_read_write_coalesced",
    "transpose_read_write_coalesced_unpadded",
]

KERNELS = [
    "offset_copy",
    "stride_copy",
    "transpose_read_coalesced",
    "transpose_write_coalesced",
    "transpose_read_write_coalesced",
    "transpose_read_write_coalesced_unpadded",
]

DTYPES = ["int8", "float16", "float32", "float64", "complex128"]

FLAG_SETS = ["-Xptxas -O3", "-Xptxas -O0", "-Xptxas -dlcm=cg"]

#: For the copies by offset and stride. What -O0 costs a copy, the matrix-sized ones show.
COPY_FLAG_SETS = ["-Xptxas -O3", "-Xptxas -dlcm=cg"]

ARCHS = ["sm_80", "sm_90", "sm_100"]

#: rows x columns.
MATRICES = [
    "256x256",
    "1024x1024",
    "2048x2048",
    "4096x4096",
    "8192x8192",
    "12800x12800",
    "5003x2999",
]

#: rows x columns that fit in the L2 cache of the GPUs of interest, input and output together, at 4 bytes an element.
MATRICES_IN_L2 = ["256x256", "1024x1024", "2048x2048"]

#: rows x columns whose transposes take up to some 20 µs, where what a launch costs by itself matters.
SHORT_MATRICES = ["256x256", "1024x1024"]

OFFSETS = [0, 1, 2, 4, 8, 16, 31, 32]

#: Elements that an offset copy moves: 2^26.
OFFSET_COPY_SIZES = [67108864]

STRIDES = [1, 2, 3, 4, 8, 16, 32]

#: Elements that a stride copy moves: 2^22 (at the largest stride and dtype its arrays take 2 GiB each).
STRIDE_COPY_SIZES = [4194304]

#: Copies of as many elements as the largest matrix has, 12800 x 12800, to stand beside its transposes.
MATRIX_SIZED_COPIES = [
    "offset_copy offset=0",
    "offset_copy offset=1",
    "stride_copy stride=1",
    "stride_copy stride=2",
]
