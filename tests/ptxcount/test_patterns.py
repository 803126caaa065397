"""Sectors and lines of one warp's accesses: a table of patterns against sets of bytes, and some of them by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ptxcount.counters import Access
from ptxcount.errors import Source
from ptxcount.transactions import LINE, SECTOR

Array = npt.NDArray[Any]
LANE = np.arange(32)
#: The element that each lane touches.
PATTERNS: dict[str, Array] = {
    "along a row": LANE,
    "offset 1": LANE + 1,
    "offset 31": LANE + 31,
    "stride 2": LANE * 2,
    "stride 3": LANE * 3,
    "stride 32": LANE * 32,
    "stride 33": LANE * 33,
    "down a column of 700": LANE * 700 + 3,
    "the ends of two rows of 700": LANE % 16 + LANE // 16 * 700 + 684,
    "all alike": LANE * 0 + 77,
    "in pairs": LANE // 2,
    "backwards": 31 - LANE,
    "shuffled": np.random.default_rng(3).permutation(LANE),
    "anywhere, some twice": np.random.default_rng(4).integers(0, 200, 32),
}
#: The lanes that take part.
MASKS: dict[str, Array] = {
    "all": LANE >= 0,
    "one": LANE == 17,
    "the first five": LANE < 5,
    "the last half": LANE >= 16,
    "every third": LANE % 3 == 1,
    "none": LANE < 0,
}
WIDTHS = (1, 2, 4, 8, 16, 32)


def _recorded(elements: Array, width: int, active: Array) -> Access:
    """What is counted of a block."""
    access = Access(Source(1), "global", "load", width)
    access.record(elements[None, :] * width, active[None, :], (1, len(elements)))
    return access


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_sets_of_bytes(pattern: str, mask: str) -> None:
    """As many sectors and lines as the bytes lie in that the active lanes touch, whatever the width."""
    for width in WIDTHS:
        access = _recorded(PATTERNS[pattern], width, MASKS[mask])
        first = [int(element) * width for element in PATTERNS[pattern][MASKS[mask]]]
        touched = {byte for address in first for byte in range(address, address + width)}
        expected = [len({byte // unit for byte in touched}) for unit in (SECTOR, LINE)]
        assert [access.requests, access.sectors, access.lines] == [int(bool(first)), *expected], width


@pytest.mark.parametrize(
    ("pattern", "width", "sectors", "lines", "ideal"),
    [
        ("along a row", 1, 1, 1, 1),  # 32 bytes fill a quarter of a line: there is no request of less than one
        ("along a row", 4, 4, 1, 1),
        ("along a row", 16, 16, 4, 4),
        ("offset 1", 4, 5, 2, 1),
        ("offset 1", 8, 9, 3, 2),  # over the warp: its halves touch two lines each
        ("offset 1", 16, 17, 5, 4),  # over the warp: its quarters touch two lines each
        ("shuffled", 16, 16, 4, 4),
        ("stride 2", 4, 8, 2, 1),
        ("stride 32", 1, 32, 8, 1),
        ("stride 32", 4, 32, 32, 1),
        ("all alike", 16, 1, 1, 4),
    ],
)
def test_by_number(pattern: str, width: int, sectors: int, lines: int, ideal: int) -> None:
    """Of each of four warps. Ideal are the fewest lines that hold as many bytes, and at least one a request."""
    access = _recorded(np.tile(PATTERNS[pattern], 4), width, np.tile(MASKS["all"], 4))
    assert (access.sectors, access.lines, access.ideal_lines) == (4 * sectors, 4 * lines, 4 * ideal)
