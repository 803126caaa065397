"""Copies of four rows of a matrix, ``tile::gather4`` and ``tile::scatter4``, which Triton writes for sm_100."""

import numpy as np
import pytest

import ptxcount
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
    source: np.ndarray, target: np.ndarray, rows: list[int], to: list[int], box: int = 1, swizzle: int = 0
) -> object:
    """Copy four rows between matrices: two coordinates are those of a tile, five are a column and four rows."""
    load, store = (f".tile::{form}" * (len(at) > 2) for form, at in (("gather4", rows), ("scatter4", to)))
    body = _BODY.format(load=load, store=store, rows=", ".join(map(str, rows)), to=", ".join(map(str, to)))
    maps = [
        ptxcount.TensorMap(array, box=(4 if len(at) == 2 else box, 8), swizzle=swizzle)
        for array, at in ((source, rows), (target, to))
    ]
    return ptxcount.count(module(body, 2, _TILE, maps=2), None, 1, 1, maps)


@pytest.mark.parametrize("swizzle", [0, 32])
def test_rows_are_copied_in_any_order(swizzle: int) -> None:
    """Rows 3, 12, 3 and 40 go to rows 9, 1, 0 and 5; the matrix has 16 rows, so row 40 counts, and is zeros."""
    source = np.arange(1, 16 * 32 + 1, dtype=np.uint32).reshape(16, 32)
    target = np.zeros((16, 32), np.uint32)
    totals = _run(source, target, [8, 3, 12, 3, 40], [16, 9, 1, 0, 5], swizzle=swizzle).totals()  # type: ignore[attr-defined]
    expected = np.zeros_like(target)
    for row, to in zip((3, 12, 3), (9, 1, 0), strict=True):
        expected[to, 16:24] = source[row, 8:16]
    np.testing.assert_array_equal(target, expected)
    assert [totals[f"bulk_{kind}_requests"] for kind in ("load", "store")] == [1, 1]
    assert [totals[f"bulk_{kind}_sectors"] for kind in ("load", "store")] == [4, 4]


@pytest.mark.parametrize(("rows", "to"), [([8, 3, 12, 5, 1], [16, 4]), ([8, 3], [16, 9, 1, 7, 5])])
def test_rows_lie_in_order_in_shared_memory(rows: list[int], to: list[int]) -> None:
    source = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    target = np.zeros((16, 32), np.uint32)
    _run(source, target, rows, to)
    expected = np.zeros_like(target)
    loaded, stored = (at[1:] if len(at) > 2 else range(at[1], at[1] + 4) for at in (rows, to))
    expected[[*stored], 16:24] = source[[*loaded], 8:16]
    np.testing.assert_array_equal(target, expected)


_ROWS_NEED = "a copy of four rows needs a tensor map of 2 dimensions, and 5 coordinates"


@pytest.mark.parametrize(("rows", "to", "box", "message"), [
    ([8, 3, 12, 3, 40], [16, 9, 1, 0, 5], 2, "has 2 rows; a copy of four rows needs a box of one row"),
    ([8, 3, 12, 5], [16, 4], 1, f"has 4 coordinates; {_ROWS_NEED}"),
    ([8, 3], [16, 9, 1, 7], 1, f"has 4 coordinates; {_ROWS_NEED}"),
])  # fmt: skip
def test_wrong_boxes_and_coordinates_are_refused(rows: list[int], to: list[int], box: int, message: str) -> None:
    matrix = np.zeros((16, 32), np.uint32)
    with pytest.raises(LaunchError, match=message):
        _run(matrix, matrix.copy(), rows, to, box)
