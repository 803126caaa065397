"""Memory transactions of the kernels, counted by executing their PTX: exact, on any machine."""

import kernelwatch.benchmarks as kw
from benchmarks.sweeps import (
    ADDITIONS,
    DEFAULT_FLAGS,
    ELEMENTS,
    FLAG_SETS,
    LECTURE_ALONE,
    MATMULS,
    MOVED,
    OFFSETS,
    SERIAL,
    STRIDES,
    TRANSPOSED_MATMULS,
    TRANSPOSES,
)

_AXES = ("kernel", "dtype", "flags")


class OffsetCopy(kw.Counted):
    """Offset copy."""

    kernel = "offset_copy"
    param_names = ("dtype", "offset", "flags")
    params = (MOVED, OFFSETS, FLAG_SETS)
    fixed = {"size": ELEMENTS}
    shown = {"offset": 1, "dtype": "float32"}


class StrideCopy(kw.Counted):
    """Stride copy."""

    kernel = "stride_copy"
    param_names = ("dtype", "stride", "flags")
    params = (MOVED, STRIDES, FLAG_SETS)
    fixed = {"size": ELEMENTS}
    shown = {"stride": 2, "dtype": "float32"}


class Transpose(kw.CountedWithShared):
    """Transpose."""

    param_names = _AXES
    params = (TRANSPOSES, MOVED, FLAG_SETS)
    fixed = {"rows": 1000, "columns": 700}  # rows begin anywhere in a sector, and tiles cross both edges
    shown = {"dtype": "float32"}
    note = "Lower is better. Rows of 700 elements begin anywhere in a sector."


class LectureTranspose(kw.CountedWithShared):
    """Transpose step by step."""

    param_names = _AXES
    # The other steps are counted above, so that a change is reported once.
    params = (LECTURE_ALONE, MOVED, DEFAULT_FLAGS)
    fixed = {"rows": 1000, "columns": 700}
    shown = {"dtype": "float32"}


class SerialTranspose(kw.Counted):
    """Transpose by one thread."""

    param_names = _AXES
    params = (SERIAL, MOVED, DEFAULT_FLAGS)
    fixed = {"rows": 40, "columns": 30}  # small, because one thread executes everything
    shown = {"dtype": "float32"}


class Add(kw.Counted):
    """Sum of two vectors."""

    param_names = _AXES
    params = (ADDITIONS, ("float32", "float64"), DEFAULT_FLAGS)
    fixed = {"size": ELEMENTS}
    shown = {"dtype": "float32"}


class MatrixProduct(kw.CountedWithShared):
    """Matrix product."""

    param_names = _AXES
    params = (MATMULS, ("float16", "float32", "float64"), DEFAULT_FLAGS)
    fixed = {"rows": 96, "inner": 64, "columns": 128}
    shown = {"dtype": "float32"}


class TransposedProduct(kw.CountedWithShared):
    """Product with a transposed matrix."""

    param_names = _AXES
    params = (TRANSPOSED_MATMULS, ("float16", "float32", "float64"), DEFAULT_FLAGS)
    fixed = {"rows": 96, "inner": 64, "columns": 128}
    shown = {"dtype": "float32"}


class RowSum(kw.Counted):
    """Sums of rows."""

    kernel = "row_sum"
    param_names = ("dtype", "flags")
    params = (("float32", "float64"), DEFAULT_FLAGS)
    fixed = {"rows": 100, "columns": 700}


class Gather(kw.Counted):
    """Elements by their indices."""

    kernel = "gather"
    param_names = ("dtype", "flags")
    params = (("float32", "float64"), DEFAULT_FLAGS)
    fixed = {"size": ELEMENTS}
    note = "Indices are random: almost every element needs its own sector. Adjacent elements of a request need 4 or 8."


class Histogram(kw.CountedWithShared):
    """Counts of values."""

    kernel = "histogram"
    param_names = ("dtype", "flags")
    params = (("int8",), DEFAULT_FLAGS)
    fixed = {"size": ELEMENTS, "bins": 64}
