"""The operations that the kernels perform, each with its NumPy reference."""

from __future__ import annotations

from gpu_kernels.spec import Array, Operation, Shape


def _transpose_shapes(rows: int, columns: int) -> tuple[Shape, Shape]:
    return (columns, rows), (rows, columns)


def _transpose_reference(output: Array, input: Array, rows: int, columns: int) -> Array:
    return input.T


def _offset_shapes(size: int, offset: int) -> tuple[Shape, Shape]:
    return (size + offset,), (size + offset,)


def _offset_reference(output: Array, input: Array, size: int, offset: int) -> Array:
    expected = output.copy()
    expected[offset:] = input[offset:]
    return expected


def _stride_shapes(size: int, stride: int) -> tuple[Shape, Shape]:
    extent = (size - 1) * stride + 1
    return (extent,), (extent,)


def _stride_reference(output: Array, input: Array, size: int, stride: int) -> Array:
    expected = output.copy()
    expected[::stride] = input[::stride]
    return expected


#: A row-major rows x columns matrix becomes a row-major columns x rows one.
TRANSPOSE = Operation(
    "transpose",
    minimum={"rows": 1, "columns": 1},
    shapes=_transpose_shapes,
    elements=lambda rows, columns: rows * columns,
    reference=_transpose_reference,
)

#: Elements offset .. offset + size - 1 are copied, those before keep their values.
OFFSET_COPY = Operation(
    "copy with an offset",
    minimum={"size": 1, "offset": 0},
    shapes=_offset_shapes,
    elements=lambda size, offset: size,
    reference=_offset_reference,
)

#: Elements 0, stride, 2 stride, ... (size of them) are copied, those between keep their values.
STRIDE_COPY = Operation(
    "copy with a stride",
    minimum={"size": 1, "stride": 1},
    shapes=_stride_shapes,
    elements=lambda size, stride: size,
    reference=_stride_reference,
)
