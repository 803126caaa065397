"""The catalog of all kernels by name. Each kernel is in a `.cu` in `kernels/`, and has one `Kernel` here."""

from __future__ import annotations

from typing import Any

from kernelwatch import Kernel, in_and_out, inputs, outputs, scalar
from kernelwatch.kernel import geometry

from . import references

_LINE, _SQUARE = 256, (32, 32)

#: Rows and columns of a tile of transpose_vectorized, by the element size in bytes.
_VECTOR_TILES = {1: (64, 256), 2: (128, 128), 4: (64, 64), 8: (32, 64), 16: (16, 32)}

#: Multiples that rows and columns of the matrix must be for each tile: output rows begin at a sector, input rows at a
#: vector.
_VECTOR_MULTIPLES: dict[tuple[int, ...], tuple[int, ...]] = {
    tile: (max(8, 32 // itemsize), 8) for itemsize, tile in _VECTOR_TILES.items()
}

#: The tile to use instead of each tile if rows or columns are not such multiples.
_RAGGED_TILES: dict[tuple[int, ...], tuple[int, ...]] = {
    (64, 256): (64, 124),
    (128, 128): (128, 62),
    (64, 64): (64, 32),
    (32, 64): (60, 32),
    (16, 32): (14, 32),
}

#: The tile to use instead of each tile if there are few of them, and the matrix is not ragged.
_SMALL_TILES: dict[tuple[int, ...], tuple[int, ...]] = {
    (64, 256): (32, 128),
    (128, 128): (32, 128),
    (64, 64): (32, 32),
    (32, 64): (32, 32),
    (16, 32): (16, 16),
}
_VECTOR_GRID = geometry.cover_or_finer(
    side=32, least=256, multiple=_VECTOR_MULTIPLES, ragged=_RAGGED_TILES, least_ragged=132, small=_SMALL_TILES
)

#: Fields that kernels of one operation share. Kernels that only move data are compared by bytes, in any dtype.
_MOVES: dict[str, Any] = {"options": ["-DELEMENT={bits}"]}
_COMPUTES: dict[str, Any] = {"options": ["-DELEMENT={T}"]}
_ADD: dict[str, Any] = {
    "arguments": [outputs("output", "size"), inputs("a", "size"), inputs("b", "size"), scalar("size", least=1)],
    "over": ("size",),
    "tile": (1024,),
    "dtypes": ("float32", "float64"),
    "flops": "size",
    "reference": references.add,
    **_COMPUTES,
}
_TRANSPOSE: dict[str, Any] = {
    "arguments": [
        outputs("output", "columns rows"),
        inputs("input", "rows columns", values="bits"),
        *(scalar("rows", least=1), scalar("columns", least=1)),
    ],
    "reference": references.transpose,
    **_MOVES,
}


def _product_fields(n: str) -> dict[str, Any]:
    """Return the fields that products of two matrices share; `n` is the stored shape of the second matrix."""
    numbers = (scalar(name, least=1) for name in ("rows", "inner", "columns"))
    output = outputs("output", "rows columns", ulp={"float16": 0.5})  # sums of up to 2^15 are exact in float32
    return {
        "arguments": [output, inputs("m", "rows inner"), inputs("n", n), *numbers],
        "dtypes": ("float16", "float32", "float64"),
        "flops": "2*rows*inner*columns",
        **_COMPUTES,
    }


_PRODUCT = {**_product_fields("inner columns"), "reference": references.matrix_product}
_TRANSPOSED_PRODUCT = {**_product_fields("columns inner"), "reference": references.transposed_product}


def _make_row(name: str, file: str, block: Any, over: tuple[str, ...] = (), **fields: Any) -> Kernel:
    """Return a kernel of a file. If a matrix needs more blocks along y than a grid allows, the grid continues in z."""
    fields = {"over": over, "grid": geometry.cover, **fields}
    return Kernel(name, block=block, file=f"gpu_kernels/kernels/{file}.cu", **fields)


def _make_copy(name: str, length: str, number: Any, reference: Any) -> Kernel:
    """Return a kernel that copies `size` elements between two arrays of `length` elements.

    `number` is the offset or the stride.
    """
    arguments = [outputs("output", length), inputs("input", length, values="bits"), scalar("size", least=1), number]
    fields = {"useful_bytes": "2*size*itemsize", "reference": reference, **_MOVES}
    return _make_row(name, name, _LINE, ("size",), arguments=arguments, **fields)


#: Kernels by name. A new kernel needs a `.cu`, a row here, and its name in a sweep of `benchmarks/sweeps.py`.
KERNELS: dict[str, Kernel] = {
    row.name: row
    for row in (
        _make_copy("offset_copy", "size+offset", scalar("offset", least=0), references.offset_copy),
        _make_copy("stride_copy", "(size-1)*stride+1", scalar("stride", least=1), references.stride_copy),
        _make_row("transpose_read_coalesced", "transpose", _SQUARE, ("columns", "rows"), **_TRANSPOSE),
        _make_row("transpose_write_coalesced", "transpose", _SQUARE, ("rows", "columns"), **_TRANSPOSE),
        _make_row("transpose_read_write_coalesced", "transpose", _SQUARE, ("columns", "rows"), **_TRANSPOSE),
        _make_row("transpose_read_write_coalesced_unpadded", "transpose", _SQUARE, ("columns", "rows"), **_TRANSPOSE),
        _make_row(
            "transpose_vectorized",
            "transpose_vectorized",
            _LINE,
            ("rows", "columns"),
            tile=_VECTOR_TILES,
            grid=_VECTOR_GRID,
            **_TRANSPOSE,
        ),
        _make_row("transpose_serial", "transpose_lecture", 1, grid=(1,), **_TRANSPOSE),
        _make_row("transpose_row_per_thread", "transpose_lecture", 32, ("rows",), **_TRANSPOSE),
        _make_row("transpose_tile_load_transposed", "transpose_lecture", _SQUARE, ("columns", "rows"), **_TRANSPOSE),
        _make_row("add_coalesced", "add", _SQUARE, **_ADD),
        _make_row("add_uncoalesced", "add", _SQUARE, **_ADD),
        _make_row("matmul_coalesced", "matmul_direct", _SQUARE, ("columns", "rows"), **_PRODUCT),
        _make_row("matmul_uncoalesced", "matmul_direct", _SQUARE, ("rows", "columns"), **_PRODUCT),
        _make_row("matmul_tiled", "matmul_tiled", (32, 8), ("columns", "rows"), tile=(32, 32), **_PRODUCT),
        _make_row(
            "matmul_corner_turning", "matmul_corner_turning", _SQUARE, ("columns", "rows"), **_TRANSPOSED_PRODUCT
        ),
        _make_row(
            "row_sum",
            "row_sum",
            32,
            arguments=[outputs("output", "rows"), inputs("input", "rows columns"), "columns"],
            grid=("rows",),
            entry="row_sum<{T}>",
            reference=references.row_sum,
        ),
        _make_row(
            "gather",
            "gather",
            _LINE,
            ("size",),
            arguments=[
                outputs("output", "size"),
                *(inputs("input", "size"), inputs("index", "size", "int32", index="size"), "size"),
            ],
            entry="gather<{T}>",
            reference=references.gather,
        ),
        _make_row(
            "histogram",
            "histogram",
            _LINE,
            ("size",),
            arguments=[
                in_and_out("counts", "bins", "uint32", values="zeros"),
                *(inputs("values", "size", "int8", index="bins"), "size", "bins"),
            ],
            tile=(4096,),
            dynamic_shared="4*bins",
            reference=references.histogram,
        ),
    )
}

#: Kernels that packages of earlier commits keep in this separate table.
MIXED = {name: KERNELS[name] for name in ("row_sum", "gather", "histogram")}
