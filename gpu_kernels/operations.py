"""The operations that the kernels perform. A row says what is computed, and where its kernels are measured."""

from __future__ import annotations

from collections.abc import Callable

from .dtypes import ONE_OF_EACH_SIZE
from .flags import DEFAULT, FLAG_SETS
from .spec import Array, Operation, Shape
from .sweep import EVERY_KERNEL, Sweep

#: rows x columns.
MATRICES = ("256x256", "1024x1024", "2048x2048", "4096x4096", "8192x8192", "12800x12800", "5003x2999")

#: Those that fit in the L2 cache of the GPUs of interest, input and output together, at 4 bytes an element.
MATRICES_IN_L2 = ("256x256", "1024x1024", "2048x2048")

#: Those whose transposes take up to about 20 µs. For these, the time of a single launch is measured too.
SHORT_MATRICES = ("256x256", "1024x1024")

#: The matrix whose transposes are compared with copies of as many elements.
LARGEST = "12800x12800"
LARGEST_ELEMENTS = 12800 * 12800

OFFSETS = (0, 1, 2, 4, 8, 16, 31, 32)
STRIDES = (1, 2, 3, 4, 8, 16, 32)

#: Without -O0: the copies of matrix size show what it costs.
COPY_FLAG_SETS = (DEFAULT, "-Xptxas -dlcm=cg")

#: The steps of a lecture on transposes, slowest first, and what comes after them; those that no other sweep has; and
#: the matrix that it takes them on.
LECTURE = (
    "transpose_row_per_thread",
    "transpose_write_coalesced",
    "transpose_tile_load_transposed",
    "transpose_read_write_coalesced_unpadded",
    "transpose_read_write_coalesced",
    "transpose_vectorized",
)
LECTURE_ALONE = ("transpose_row_per_thread", "transpose_tile_load_transposed")
LECTURE_MATRICES = ("2880x2880",)

#: The matrix of the transpose by a single thread.
SERIAL_MATRICES = ("256x256",)

#: rows x inner x columns of products; the first in every dtype.
PRODUCTS = ("1024x1024x1024", "2048x2048x2048", "4096x4096x4096")

#: Elements that are copied or added where counts are taken.
COUNTED = 1 << 16


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
    timed=(
        Sweep(
            "Transpose",
            "Transpose, DRAM",
            {"kernel": EVERY_KERNEL, "rows x columns": MATRICES, "dtype": ONE_OF_EACH_SIZE, "flags": FLAG_SETS},
            module="time_transpose",
            shown={"kernel": "transpose_read_write_coalesced", "rows x columns": LARGEST, "dtype": "float32"},
            note="A plain copy of as many bytes, 16 a thread, is what a transpose could reach.",
        ),
        Sweep(
            "TransposeInL2",
            "Transpose, L2 cache",
            {"kernel": EVERY_KERNEL, "rows x columns": MATRICES_IN_L2, "dtype": ("float32",), "flags": (DEFAULT,)},
            module="time_transpose",
            in_l2=True,
        ),
        Sweep(
            "IsolatedTranspose",
            "Transpose, DRAM",
            {"kernel": EVERY_KERNEL, "rows x columns": SHORT_MATRICES, "dtype": ONE_OF_EACH_SIZE, "flags": (DEFAULT,)},
            module="time_transpose",
            isolated=True,
        ),
        Sweep(
            "LectureTranspose",
            "Transpose step by step, DRAM",
            {"kernel": LECTURE, "rows x columns": LECTURE_MATRICES, "dtype": ("float64",), "flags": (DEFAULT,)},
            module="time_transpose",
            note="The steps of a lecture on its matrix, up to a tile without padding, and what comes after.",
        ),
        Sweep(
            "SerialTranspose",
            "Transpose by one thread, L2 cache",
            {
                "kernel": ("transpose_serial",),
                "rows x columns": SERIAL_MATRICES,
                "dtype": ("float64",),
                "flags": (DEFAULT,),
            },
            module="time_transpose",
            note="The step before the first: nothing is done at the same time.",
            in_l2=True,  # or else a sample is one thread's way through four times the L2
        ),
    ),
    # Rows of 700 elements begin at any place of a sector, and tiles stick out at both edges.
    counted=(
        Sweep(
            "Transpose",
            "Transpose",
            {"kernel": EVERY_KERNEL, "dtype": ONE_OF_EACH_SIZE, "flags": FLAG_SETS},
            fixed={"rows": 1000, "columns": 700},
            shown={"dtype": "float32"},
            note="Fewer are better. Rows of 700 elements begin anywhere in a sector.",
        ),
        # The other steps are counted above, so that a change is reported once.
        Sweep(
            "LectureTranspose",
            "Transpose step by step",
            {"kernel": LECTURE_ALONE, "dtype": ONE_OF_EACH_SIZE, "flags": (DEFAULT,)},
            fixed={"rows": 1000, "columns": 700},
            shown={"dtype": "float32"},
        ),
        # One thread executes everything: a small matrix.
        Sweep(
            "SerialTranspose",
            "Transpose by one thread",
            {"kernel": ("transpose_serial",), "dtype": ONE_OF_EACH_SIZE, "flags": (DEFAULT,)},
            fixed={"rows": 40, "columns": 30},
            shown={"dtype": "float32"},
            shared=False,
        ),
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
    timed=(
        Sweep(
            "OffsetCopy",
            "Offset copy, DRAM",
            {"offset": OFFSETS, "size": (1 << 26,), "dtype": ONE_OF_EACH_SIZE, "flags": COPY_FLAG_SETS},
            module="time_copy",
            shown={"offset": 1, "dtype": "float32"},
            note="A warp whose bytes do not begin at a sector touches one sector more: float32 takes 5 sectors for 4. "
            "So 20 % would be lost if no cache kept the shared one. Caches do: what is lost is less.",
        ),
        Sweep(
            "MatrixSizedCopy",
            "Copies of 12800 x 12800 elements, DRAM",
            {
                "copy": (
                    "offset_copy offset=0",
                    "offset_copy offset=1",
                    "stride_copy stride=1",
                    "stride_copy stride=2",
                ),
                "dtype": ("float32",),
                "flags": FLAG_SETS,
            },
            module="time_copy",
            fixed={"size": LARGEST_ELEMENTS},
        ),
    ),
    counted=(
        Sweep(
            "OffsetCopy",
            "Offset copy",
            {"dtype": ONE_OF_EACH_SIZE, "offset": OFFSETS, "flags": FLAG_SETS},
            fixed={"size": COUNTED},
            shown={"offset": 1, "dtype": "float32"},
            shared=False,
        ),
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
    timed=(
        # 2^22: at the largest stride and dtype its arrays take 2 GiB each.
        Sweep(
            "StrideCopy",
            "Stride copy, DRAM",
            {"stride": STRIDES, "size": (1 << 22,), "dtype": ONE_OF_EACH_SIZE, "flags": COPY_FLAG_SETS},
            module="time_copy",
            shown={"stride": 2, "dtype": "float32"},
            note="Whole sectors of 32 bytes are moved whatever is used of them: half is lost at stride 2, until each "
            "element takes a sector of its own.",
        ),
    ),
    counted=(
        Sweep(
            "StrideCopy",
            "Stride copy",
            {"dtype": ONE_OF_EACH_SIZE, "stride": STRIDES, "flags": FLAG_SETS},
            fixed={"size": COUNTED},
            shown={"stride": 2, "dtype": "float32"},
            shared=False,
        ),
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
    timed=(
        Sweep(
            "Add",
            "Sum of two vectors, DRAM",
            {"kernel": EVERY_KERNEL, "size": (1 << 26,), "dtype": ("float32", "float64"), "flags": (DEFAULT,)},
            shown={"dtype": "float32"},
        ),
    ),
    counted=(
        Sweep(
            "Add",
            "Sum of two vectors",
            {"kernel": EVERY_KERNEL, "dtype": ("float32", "float64"), "flags": (DEFAULT,)},
            fixed={"size": COUNTED},
            shown={"dtype": "float32"},
            shared=False,
        ),
    ),
)


def _product(name: str, sweep: str, stored: Callable[[int, int], Shape], reference: Callable[..., Array]) -> Operation:
    """Return a product of a row-major rows x inner matrix and another, which is `stored` in such a shape.

    Its kernels are measured in float32 over the sizes, in the other dtypes at the first of them.
    """
    sizes, dtypes, flags = "rows x inner x columns", ("float16", "float32", "float64"), (DEFAULT,)
    title = name.capitalize()
    return Operation(
        name,
        minimum={"rows": 1, "inner": 1, "columns": 1},
        shapes=lambda rows, inner, columns: ((rows, columns), (rows, inner), stored(inner, columns)),
        reference=reference,
        values="exact",  # sums of up to 2^15 products are exact in float32
        names=dtypes,
        ulp={"float16": 0.5},  # such a sum, rounded once
        flops=lambda rows, inner, columns: 2 * rows * inner * columns,
        awkward=(
            *((1, 1, 1), (1, 127, 1), (33, 1, 33), (31, 33, 32), (33, 31, 1), (32, 32, 32), (1, 33, 127)),
            *((33, 33, 31), (127, 32, 33), (31, 127, 127)),
        ),
        timed=(
            Sweep(
                sweep,
                f"{title}, DRAM",
                {"kernel": EVERY_KERNEL, sizes: PRODUCTS, "dtype": ("float32",), "flags": flags},
                note="Useful bytes are those of three matrices, however often they are read. A copy of as many bytes, "
                "the control, is not the ceiling here: arithmetic is, so GFLOP/s tell more.",
            ),
            Sweep(
                f"{sweep}InOtherDtypes",
                f"{title} in other dtypes, DRAM",
                {"kernel": EVERY_KERNEL, sizes: PRODUCTS[:1], "dtype": ("float16", "float64"), "flags": flags},
            ),
        ),
        counted=(
            Sweep(
                sweep,
                title,
                {"kernel": EVERY_KERNEL, "dtype": dtypes, "flags": flags},
                fixed={"rows": 96, "inner": 64, "columns": 128},
                shown={"dtype": "float32"},
            ),
        ),
    )


#: Both matrices are row-major.
MATRIX_PRODUCT = _product(
    "matrix product",
    "MatrixProduct",
    stored=lambda inner, columns: (inner, columns),
    reference=lambda output, m, n, **lengths: m @ n,
)

#: The second matrix is stored by columns: in memory lies its transpose.
TRANSPOSED_PRODUCT = _product(
    "product with a transposed matrix",
    "TransposedProduct",
    stored=lambda inner, columns: (columns, inner),
    reference=lambda output, m, n, **lengths: m @ n.T,
)
