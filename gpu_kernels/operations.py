"""The operations that the kernels perform. A row says what is computed, and what NumPy makes of it."""

from __future__ import annotations

from collections.abc import Callable

from kernelwatch.kernel import Array, Operation, Shape


def _transpose_shapes(rows: int, columns: int) -> tuple[Shape, ...]:
    return (columns, rows), (rows, columns)


def _transpose_reference(output: Array, input: Array, rows: int, columns: int) -> Array:
    return input.T


def _offset_shapes(size: int, offset: int) -> tuple[Shape, ...]:
    return (size + offset,), (size + offset,)


def _offset_reference(output: Array, input: Array, size: int, offset: int) -> Array:
    output[offset:] = input[offset:]
    return output


def _stride_shapes(size: int, stride: int) -> tuple[Shape, ...]:
    extent = (size - 1) * stride + 1
    return (extent,), (extent,)


def _stride_reference(output: Array, input: Array, size: int, stride: int) -> Array:
    output[::stride] = input[::stride]
    return output


#: A row-major rows x columns matrix becomes a row-major columns x rows one.
TRANSPOSE = Operation(
    "transpose",
    minimum={"rows": 1, "columns": 1},
    shapes=_transpose_shapes,
    reference=_transpose_reference,
    awkward=(
        *((1, 1), (1, 65), (65, 1), (31, 33), (32, 32), (33, 31), (64, 96), (97, 101), (1, 3000), (3000, 1)),
        *((257, 1030), (1000, 700), (1024, 1024)),
    ),
)

#: Elements offset .. offset + size - 1 are copied, those before keep their values.
OFFSET_COPY = Operation(
    "copy with an offset",
    minimum={"size": 1, "offset": 0},
    shapes=_offset_shapes,
    reference=_offset_reference,
    elements=lambda size, offset: 2 * size,
    awkward=(
        *((1, 0), (31, 1), (32, 2), (33, 31), (255, 32), (256, 0), (257, 1), (1000, 2), (4099, 31)),
        *((65536, 31), (100003, 0), (100003, 1)),
    ),
)

#: Elements 0, stride, 2 stride, ... (size of them) are copied, those between keep their values.
STRIDE_COPY = Operation(
    "copy with a stride",
    minimum={"size": 1, "stride": 1},
    shapes=_stride_shapes,
    reference=_stride_reference,
    elements=lambda size, stride: 2 * size,
    awkward=(
        *((1, 1), (31, 2), (32, 3), (33, 8), (255, 32), (256, 1), (257, 2), (1000, 3), (4099, 8)),
        *((50001, 2), (50001, 3), (65536, 32)),
    ),
)

#: The sum of two vectors.
ADD = Operation(
    "addition",
    minimum={"size": 1},
    shapes=lambda size: ((size,), (size,), (size,)),
    reference=lambda output, a, b, size: a + b,
    values="exact",
    names=("float32", "float64"),
    flops=lambda size: size,
    awkward=((1,), (31,), (33,), (255,), (992,), (1000,), (1023,), (1024,), (1025,), (4099,), (65536,), (100003,)),
)


def _product(name: str, stored: Callable[[int, int], Shape], reference: Callable[..., Array]) -> Operation:
    """Return a product of a row-major rows x inner matrix and another, which is `stored` in such a shape."""
    return Operation(
        name,
        minimum={"rows": 1, "inner": 1, "columns": 1},
        shapes=lambda rows, inner, columns: ((rows, columns), (rows, inner), stored(inner, columns)),
        reference=reference,
        values="exact",  # sums of up to 2^15 products are exact in float32
        names=("float16", "float32", "float64"),
        ulp={"float16": 0.5},  # such a sum, rounded once
        flops=lambda rows, inner, columns: 2 * rows * inner * columns,
        awkward=(
            *((1, 1, 1), (1, 127, 1), (33, 1, 33), (31, 33, 32), (33, 31, 1), (32, 32, 32), (1, 33, 127)),
            *((33, 33, 31), (127, 32, 33), (31, 127, 127)),
        ),
    )


#: Both matrices are row-major.
MATRIX_PRODUCT = _product(
    "matrix product",
    stored=lambda inner, columns: (inner, columns),
    reference=lambda output, m, n, **lengths: m @ n,
)

#: The second matrix is stored by columns: in memory lies its transpose.
TRANSPOSED_PRODUCT = _product(
    "product with a transposed matrix",
    stored=lambda inner, columns: (columns, inner),
    reference=lambda output, m, n, **lengths: m @ n.T,
)
