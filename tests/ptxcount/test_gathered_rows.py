"""Copies of four rows of a matrix, ``tile::gather4`` and ``tile::scatter4``, which Triton writes for sm_100."""

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import LaunchError
from tests.ptxcount.snippets import module

_TILE = ".shared .align 1024 .b8 s[1024]; .shared .align 8 .b64 b;"
_BODY = """
mov.u64 %rd1, p0; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, p1; cvta.param.u64 %rd2, %rd2;
mov.u32 %r1, s; mov.u32 %r2, b;
mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
cp.async.bulk.tensor.2d.shared::cta.global{load}.mbarrier::complete_tx::bytes [%r1], [%rd1, {{{rows}}}], [%r2];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
@!%p1 bra WAIT;
cp.async.bulk.tensor.2d.global.shared::cta{store}.bulk_group [%rd2, {{{to}}}], [%r1];
"""


def _run(
    source: Array, target: Array, load: list[int], store: list[int], *, box_rows: int = 1, swizzle: int = 0
) -> ptxcount.LaunchCounters:
    """Copy four rows of eight numbers between matrices.

    `load` and `store` are coordinates: column and row of a tile of four rows, or a column and four rows.
    """
    maps = []
    for array, coordinates in ((source, load), (target, store)):
        rows = 4 if len(coordinates) == 2 else box_rows
        maps.append(ptxcount.TensorMap(array, box=(rows, 8), swizzle=swizzle))
    body = _BODY.format(
        load=".tile::gather4" if len(load) > 2 else "",
        store=".tile::scatter4" if len(store) > 2 else "",
        rows=", ".join(map(str, load)),
        to=", ".join(map(str, store)),
    )
    return ptxcount.count(module(body, 2, _TILE, maps=2), None, 1, 1, maps)


@pytest.mark.parametrize("swizzle", [0, 32])
def test_rows_are_copied_in_any_order(swizzle: int) -> None:
    """The last of the loaded rows, 40, is outside of the matrix: zeros go to row 5, and its sector is counted."""
    source = np.arange(1, 16 * 32 + 1, dtype=np.uint32).reshape(16, 32)
    target = np.zeros((16, 32), np.uint32)
    totals = _run(source, target, load=[8, 3, 12, 3, 40], store=[16, 9, 1, 0, 5], swizzle=swizzle).totals()
    expected = np.zeros_like(target)
    expected[[9, 1, 0], 16:24] = source[[3, 12, 3], 8:16]
    np.testing.assert_array_equal(target, expected)
    assert [totals[f"bulk_{kind}_requests"] for kind in ("load", "store")] == [1, 1]
    assert [totals[f"bulk_{kind}_sectors"] for kind in ("load", "store")] == [4, 4]


@pytest.mark.parametrize(("load", "loaded", "store", "stored"), [
    ([8, 3, 12, 5, 1], [3, 12, 5, 1], [16, 4], [4, 5, 6, 7]), ([8, 3], [3, 4, 5, 6], [16, 9, 1, 7, 5], [9, 1, 7, 5]),
])  # fmt: skip
def test_rows_lie_in_order_in_shared_memory(
    load: list[int], loaded: list[int], store: list[int], stored: list[int]
) -> None:
    """First, gathered rows are stored as a tile; then rows of a tile are scattered. A tile has its rows in order."""
    source = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    target = np.zeros((16, 32), np.uint32)
    _run(source, target, load, store)
    expected = np.zeros_like(target)
    expected[stored, 16:24] = source[loaded, 8:16]
    np.testing.assert_array_equal(target, expected)


_ROWS_NEED = "a copy of four rows needs a tensor map of 2 dimensions, and 5 coordinates"


@pytest.mark.parametrize(("load", "store", "box_rows", "message"), [
    ([8, 3, 12, 3, 40], [16, 9, 1, 0, 5], 2, "has 2 rows; a copy of four rows needs a box of one row"),
    ([8, 3, 12, 5], [16, 4], 1, f"has 4 coordinates; {_ROWS_NEED}"),
    ([8, 3], [16, 9, 1, 7], 1, f"has 4 coordinates; {_ROWS_NEED}"),
])  # fmt: skip
def test_wrong_boxes_and_coordinates_are_refused(
    load: list[int], store: list[int], box_rows: int, message: str
) -> None:
    matrix = np.zeros((16, 32), np.uint32)
    with pytest.raises(LaunchError, match=message):
        _run(matrix, matrix.copy(), load, store, box_rows=box_rows)
