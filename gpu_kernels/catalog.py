"""The catalog: all kernels by name."""

from __future__ import annotations

from collections.abc import Iterator

from . import geometry
from . import operations as op
from .errors import UnknownKernelError
from .spec import Kernel, Operation
from .sweep import Sweep

_THREAD = (1, 1, 1)
_WARP = (32, 1, 1)
_LINE = (256, 1, 1)
_SQUARE = (32, 32, 1)

#: Rows and columns of the tiles of transpose_vectorized, by the bytes of an element.
_VECTOR_TILES = {1: (64, 256), 2: (128, 128), 4: (64, 64), 8: (64, 32), 16: (32, 16)}

#: Those that stand for them where rows or columns are no multiple of 8.
_RAGGED_TILES: dict[tuple[int, ...], tuple[int, ...]] = {
    (64, 256): (64, 64),
    (128, 128): (64, 64),
    (64, 64): (128, 32),
    (64, 32): (32, 32),
    (32, 16): (32, 16),
}

#: Kernels of the lecture are measured on its matrix only, not at every shape: some are slow on purpose.
_LECTURE = ("LectureTranspose",)
_SERIAL = ("SerialTranspose",)

#: To add a kernel: its `.cu` and one row here. It is then compiled, counted, verified, timed and shown.
KERNELS: dict[str, Kernel] = {
    row.name: row
    for row in (
        Kernel("offset_copy", "offset_copy.cu", op.OFFSET_COPY, _LINE, ("size",)),
        Kernel("stride_copy", "stride_copy.cu", op.STRIDE_COPY, _LINE, ("size",)),
        Kernel("transpose_read_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        Kernel("transpose_write_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("rows", "columns")),
        Kernel("transpose_read_write_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        Kernel("transpose_read_write_coalesced_unpadded", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        Kernel(
            "transpose_vectorized",
            "transpose_vectorized.cu",
            op.TRANSPOSE,
            _LINE,
            ("rows", "columns"),
            tile=_VECTOR_TILES,
            grid=geometry.cover_or_finer(side=32, least=64, multiple=8, ragged=_RAGGED_TILES, least_ragged=512),
        ),
        Kernel(
            "transpose_serial",
            "transpose_lecture.cu",
            op.TRANSPOSE,
            _THREAD,
            (),
            grid=geometry.one_block,
            sweeps=_SERIAL,
        ),
        Kernel("transpose_row_per_thread", "transpose_lecture.cu", op.TRANSPOSE, _WARP, ("rows",), sweeps=_LECTURE),
        Kernel(
            "transpose_tile_load_transposed",
            "transpose_lecture.cu",
            op.TRANSPOSE,
            _SQUARE,
            ("columns", "rows"),
            sweeps=_LECTURE,
        ),
        Kernel("add_coalesced", "add.cu", op.ADD, _SQUARE, ("size",), (1024,)),
        Kernel("add_uncoalesced", "add.cu", op.ADD, _SQUARE, ("size",), (1024,)),
        Kernel("matmul_coalesced", "matmul_direct.cu", op.MATRIX_PRODUCT, _SQUARE, ("columns", "rows")),
        Kernel("matmul_uncoalesced", "matmul_direct.cu", op.MATRIX_PRODUCT, _SQUARE, ("rows", "columns")),
        Kernel("matmul_tiled", "matmul_tiled.cu", op.MATRIX_PRODUCT, (32, 8, 1), ("columns", "rows"), tile=(32, 32)),
        Kernel(
            "matmul_corner_turning",
            "matmul_corner_turning.cu",
            op.TRANSPOSED_PRODUCT,
            _SQUARE,
            ("columns", "rows"),
        ),
    )
}


def get(kernel: str | Kernel) -> Kernel:
    """Return the kernel of that name. A Kernel is returned as it is.

    Raises
    ------
    UnknownKernelError
        The catalog holds no such kernel.
    """
    if isinstance(kernel, Kernel):
        return kernel
    try:
        return KERNELS[kernel]
    except (KeyError, TypeError):  # TypeError: not hashable
        raise UnknownKernelError(f"kernel {kernel!r} is not known; allowed are {', '.join(KERNELS)}") from None


def performed() -> list[Operation]:
    """Return the operations that kernels of the catalog perform, in the order of their first kernels."""
    return list({id(kernel.operation): kernel.operation for kernel in KERNELS.values()}.values())


def performing(operation: Operation) -> list[str]:
    """Return the names of the kernels that perform an operation."""
    return [name for name, kernel in KERNELS.items() if kernel.operation is operation]


def measured(operation: Operation, sweep: Sweep) -> list[str]:
    """Return the names of the kernels that a sweep over every kernel of an operation measures."""
    return [name for name in performing(operation) if sweep.name in (KERNELS[name].sweeps or (sweep.name,))]


def timed() -> Iterator[Sweep]:
    """Yield every sweep that is timed on a GPU."""
    for operation in performed():
        for sweep in operation.timed:
            yield from sweep.of(measured(operation, sweep))


def counted() -> Iterator[Sweep]:
    """Yield every sweep whose memory transactions are counted."""
    for operation in performed():
        for sweep in operation.counted:
            yield from sweep.of(measured(operation, sweep))
