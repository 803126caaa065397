"""The catalog: all kernels by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelwatch.errors import UnknownKernelError
from kernelwatch.kernel import Operation, Row, geometry
from kernelwatch.kernel.geometry import Extent

from . import operations as op

_SOURCES = Path(__file__).parent / "kernels"

_THREAD = (1, 1, 1)
_WARP = (32, 1, 1)
_LINE = (256, 1, 1)
_SQUARE = (32, 32, 1)

#: Rows and columns of the tiles of transpose_vectorized, by the bytes of an element.
_VECTOR_TILES = {1: (64, 256), 2: (128, 128), 4: (64, 64), 8: (64, 32), 16: (32, 16)}

#: Those that stand for them where rows or columns are no multiple of 8.
_RAGGED_TILES: dict[tuple[int, ...], tuple[int, ...]] = {
    (64, 256): (64, 124),
    (128, 128): (128, 62),
    (64, 64): (64, 32),
    (64, 32): (60, 32),
    (32, 16): (14, 32),
}


def _row(name: str, source: str, operation: Operation, block: Extent, over: tuple[str, ...], **more: Any) -> Row:
    """Return a kernel of `kernels/`."""
    return Row(name, _SOURCES / source, operation, block, over, **more)


#: To add a kernel: its `.cu`, one row here, and its name in the sweeps of `benchmarks/sweeps.py` that measure it.
KERNELS: dict[str, Row] = {
    row.name: row
    for row in (
        _row("offset_copy", "offset_copy.cu", op.OFFSET_COPY, _LINE, ("size",)),
        _row("stride_copy", "stride_copy.cu", op.STRIDE_COPY, _LINE, ("size",)),
        _row("transpose_read_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        _row("transpose_write_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("rows", "columns")),
        _row("transpose_read_write_coalesced", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        _row("transpose_read_write_coalesced_unpadded", "transpose.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        _row(
            "transpose_vectorized",
            "transpose_vectorized.cu",
            op.TRANSPOSE,
            _LINE,
            ("rows", "columns"),
            tile=_VECTOR_TILES,
            grid=geometry.cover_or_finer(side=32, least=64, multiple=8, ragged=_RAGGED_TILES, least_ragged=132),
        ),
        _row("transpose_serial", "transpose_lecture.cu", op.TRANSPOSE, _THREAD, (), grid=geometry.one_block),
        _row("transpose_row_per_thread", "transpose_lecture.cu", op.TRANSPOSE, _WARP, ("rows",)),
        _row("transpose_tile_load_transposed", "transpose_lecture.cu", op.TRANSPOSE, _SQUARE, ("columns", "rows")),
        _row("add_coalesced", "add.cu", op.ADD, _SQUARE, ("size",), tile=(1024,)),
        _row("add_uncoalesced", "add.cu", op.ADD, _SQUARE, ("size",), tile=(1024,)),
        _row("matmul_coalesced", "matmul_direct.cu", op.MATRIX_PRODUCT, _SQUARE, ("columns", "rows")),
        _row("matmul_uncoalesced", "matmul_direct.cu", op.MATRIX_PRODUCT, _SQUARE, ("rows", "columns")),
        _row("matmul_tiled", "matmul_tiled.cu", op.MATRIX_PRODUCT, (32, 8, 1), ("columns", "rows"), tile=(32, 32)),
        _row("matmul_corner_turning", "matmul_corner_turning.cu", op.TRANSPOSED_PRODUCT, _SQUARE, ("columns", "rows")),
    )
}


def get(kernel: str) -> Row:
    """Return the kernel of that name.

    Raises
    ------
    UnknownKernelError
        The catalog holds no such kernel.
    """
    if kernel not in KERNELS:
        raise UnknownKernelError(f"kernel {kernel!r} is not known; allowed are {', '.join(KERNELS)}")
    return KERNELS[kernel]
