"""Sectors and lines of one warp's accesses by number; random ones are in `test_counters`, against sets of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ptxcount.counters import Access
from ptxcount.errors import Source

Array = npt.NDArray[Any]
LANE = np.arange(32)
#: The element that each lane touches.
PATTERNS: dict[str, Array] = {
    "along a row": LANE,
    "offset 1": LANE + 1,
    "stride 2": LANE * 2,
    "stride 32": LANE * 32,
    "all alike": LANE * 0 + 77,
    "shuffled": np.random.default_rng(3).permutation(LANE),
}


def _recorded(elements: Array, width: int, active: Array) -> Access:
    """What is counted of a block."""
    access = Access(Source(1), "global", "load", width)
    access.record(elements[None, :] * width, active[None, :], (1, len(elements)))
    return access


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
    access = _recorded(np.tile(PATTERNS[pattern], 4), width, np.ones(128, bool))
    assert (access.sectors, access.lines, access.ideal_lines) == (4 * sectors, 4 * lines, 4 * ideal)
