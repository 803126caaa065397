"""Values of axes that several classes of benchmarks share.

Kernels are named here, not read from the installed package: asv runs these benchmarks on old commits too, and the axes
must be today's for all of them. To measure a new kernel, add its name to those of its operation.
"""

from __future__ import annotations

#: Flag sets, as a user would type them. A new flag set is a new row.
FLAG_SETS = ("-Xptxas -O3", "-Xptxas -O0", "-Xptxas -dlcm=cg")
DEFAULT_FLAGS = FLAG_SETS[:1]

#: Without -O0: the copies of matrix size show its cost.
COPY_FLAG_SETS = (FLAG_SETS[0], FLAG_SETS[2])

#: The architectures that kernels are compiled for on any machine.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: One dtype of each item size. Kernels that move data are measured with these only.
MOVED = ("int8", "float16", "float32", "float64", "complex128")

#: rows x columns.
MATRICES = ("256x256", "1024x1024", "2048x2048", "4096x4096", "8192x8192", "12800x12800", "5003x2999")

#: Matrices that fit in the L2 cache of the GPUs of interest, input and output together, at 4 bytes an element.
MATRICES_IN_L2 = MATRICES[:3]

#: Matrices whose transposes take up to about 20 µs. For these, the time of a single launch is measured too.
SHORT_MATRICES = MATRICES[:2]

#: The matrix whose transposes are compared with copies of as many elements.
LARGEST = "12800x12800"
LARGEST_ELEMENTS = 12800 * 12800

OFFSETS = (0, 1, 2, 4, 8, 16, 31, 32)
STRIDES = (1, 2, 3, 4, 8, 16, 32)

#: rows x inner x columns of products; the first in every dtype.
PRODUCTS = ("1024x1024x1024", "2048x2048x2048", "4096x4096x4096")

#: Elements that are copied or added in counted launches.
ELEMENTS = 1 << 16

#: The transposes that are measured at every shape.
TRANSPOSES = (
    "transpose_read_coalesced",
    "transpose_write_coalesced",
    "transpose_read_write_coalesced",
    "transpose_read_write_coalesced_unpadded",
    "transpose_vectorized",
)

#: The steps of a lecture on transposes, slowest first, and later improvements. Steps that no other sweep has are
#: measured on its matrix only: some are slow on purpose.
LECTURE = (
    "transpose_row_per_thread",
    "transpose_write_coalesced",
    "transpose_tile_load_transposed",
    "transpose_read_write_coalesced_unpadded",
    "transpose_read_write_coalesced",
    "transpose_vectorized",
)
LECTURE_ALONE = ("transpose_row_per_thread", "transpose_tile_load_transposed")
SERIAL = ("transpose_serial",)

ADDITIONS = ("add_coalesced", "add_uncoalesced")

#: Products with a matrix as it is stored, and with a transposed one.
MATMULS = ("matmul_coalesced", "matmul_uncoalesced", "matmul_tiled")
TRANSPOSED_MATMULS = ("matmul_corner_turning",)
