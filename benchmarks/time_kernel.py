"""Times of the kernels of all other operations."""

import kernelwatch.benchmarks as kw
from benchmarks.sweeps import ADDITIONS, DEFAULT_FLAGS, MATMULS, PRODUCTS, TRANSPOSED_MATMULS

_PRODUCT_AXES = ("kernel", "rows x inner x columns", "dtype", "flags")
_PRODUCT_NOTE = (
    "Useful bytes are those of the three matrices, no matter how often they are read. Arithmetic, not the copy of as "
    "many bytes, limits the speed here, so GFLOP/s are more informative."
)


class Add(kw.BackToBack):
    """Sum of two vectors, DRAM."""

    param_names = ("kernel", "size", "dtype", "flags")
    params = (ADDITIONS, (1 << 26,), ("float32", "float64"), DEFAULT_FLAGS)
    shown = {"dtype": "float32"}


class MatrixProduct(kw.BackToBack):
    """Matrix product, DRAM."""

    param_names = _PRODUCT_AXES
    params = (MATMULS, PRODUCTS, ("float32",), DEFAULT_FLAGS)
    note = _PRODUCT_NOTE


class MatrixProductInOtherDtypes(kw.BackToBack):
    """Matrix product in other dtypes, DRAM."""

    param_names = _PRODUCT_AXES
    params = (MATMULS, PRODUCTS[:1], ("float16", "float64"), DEFAULT_FLAGS)


class TransposedProduct(kw.BackToBack):
    """Product with a transposed matrix, DRAM."""

    param_names = _PRODUCT_AXES
    params = (TRANSPOSED_MATMULS, PRODUCTS, ("float32",), DEFAULT_FLAGS)
    note = _PRODUCT_NOTE


class TransposedProductInOtherDtypes(kw.BackToBack):
    """Product with a transposed matrix in other dtypes, DRAM."""

    param_names = _PRODUCT_AXES
    params = (TRANSPOSED_MATMULS, PRODUCTS[:1], ("float16", "float64"), DEFAULT_FLAGS)


class RowSum(kw.BackToBack):
    """Sums of rows, DRAM."""

    kernel = "row_sum"
    param_names = ("rows x columns", "dtype", "flags")
    params = (("4096x4096", "5003x2999"), ("float32", "float64"), DEFAULT_FLAGS)


class Gather(kw.BackToBack):
    """Elements by their indices, DRAM."""

    kernel = "gather"
    param_names = ("size", "dtype", "flags")
    params = ((1 << 24,), ("float32", "float64"), DEFAULT_FLAGS)
    note = "Useful bytes are those of elements, indices and results. Almost every element takes a sector."


class GatherFetching32(Gather):
    """Elements by their indices, DRAM, 32 bytes a miss of L2."""

    l2_fetch_bytes = 32


class GatherFetching64(Gather):
    """Elements by their indices, DRAM, 64 bytes a miss of L2."""

    l2_fetch_bytes = 64


class GatherFetching128(Gather):
    """Elements by their indices, DRAM, 128 bytes a miss of L2."""

    l2_fetch_bytes = 128


class Histogram(kw.BackToBack):
    """Counts of values, DRAM."""

    kernel = "histogram"
    param_names = ("size", "bins", "dtype", "flags")
    params = ((1 << 26,), (64,), ("int8",), DEFAULT_FLAGS)
    note = "Atomics in shared memory limit the speed here, not memory bandwidth."
