"""Values of axes that several benchmark classes share.

The kernels are listed here, because all commits must have the same axes. The installed package may be that of an old
commit. To measure a new kernel, add its name to the kernels of its operation.
"""

#: Flag sets, as on nvcc's command line. To add one, add a row.
FLAG_SETS = ("-Xptxas -O3", "-Xptxas -O0", "-Xptxas -dlcm=cg")
DEFAULT_FLAGS = FLAG_SETS[:1]

#: Flag sets of timed copies. Only `MatrixSizedCopy` is also timed with -O0.
COPY_FLAG_SETS = (FLAG_SETS[0], FLAG_SETS[2])

#: The architectures for which kernels are compiled, on any machine.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: One dtype per item size. Kernels that only move data are measured with these dtypes.
MOVED = ("int8", "float16", "float32", "float64", "complex128")

#: Shapes of matrices: rows x columns.
MATRICES = ("256x256", "1024x1024", "2048x2048", "4096x4096", "8192x8192", "12800x12800", "5003x2999")

#: Matrices whose input and output together fit in the L2 cache of current GPUs, at 4 bytes per element.
MATRICES_IN_L2 = MATRICES[:3]

#: Matrices whose transposes take up to about 20 µs. For these, the time of a single launch is measured, too.
SHORT_MATRICES = MATRICES[:2]

#: The matrix whose transposes are compared with copies of the same number of elements.
LARGEST = "12800x12800"
LARGEST_ELEMENTS = 12800 * 12800

OFFSETS = (0, 1, 2, 4, 8, 16, 31, 32)
STRIDES = (1, 2, 3, 4, 8, 16, 32)

#: Shapes of products: rows x inner x columns. Only the first is measured in all dtypes.
PRODUCTS = ("1024x1024x1024", "2048x2048x2048", "4096x4096x4096")

#: Number of elements that counted launches copy or add.
ELEMENTS = 1 << 16

#: The transposes that are measured at all shapes.
TRANSPOSES = (
    "transpose_read_coalesced",
    "transpose_write_coalesced",
    "transpose_read_write_coalesced",
    "transpose_read_write_coalesced_unpadded",
    "transpose_vectorized",
)

#: The steps of a lecture on transposes, slowest first, and later improvements. Steps that no other sweep has are
#: measured only on the lecture's matrix, because some are slow on purpose.
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

#: Products with a matrix as stored, and with a transposed matrix.
MATMULS = ("matmul_coalesced", "matmul_uncoalesced", "matmul_tiled")
TRANSPOSED_MATMULS = ("matmul_corner_turning",)
