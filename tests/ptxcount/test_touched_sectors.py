"""Sectors that an access touches, found from its addresses by block and by thread."""

from __future__ import annotations

import numpy as np
import pytest

from ptxcount.counting.transactions import SECTOR
from ptxcount.lanes.symbolic_values import Sum
from ptxcount.machine.regions import ArrayPart, Region

BASE, SECTORS = 1 << 40, 64


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize(
    ("blocks", "threads"),
    [
        pytest.param([0, 128, 256], range(0, 128, 4), id="contiguous"),
        pytest.param([64, 64, 0], [0, 0, 512, 512], id="repeated"),
        pytest.param([20, 52, 1044], range(0, 96, 12), id="blocks begin in the middle of a sector"),
        pytest.param([4, 24, 132], range(0, 512, 36), id="blocks begin at different places"),
        pytest.param([1000, 1512], range(-1000, 0, 100), id="negative parts"),
    ],
)
def test_access_notes_its_sectors(blocks: list[int], threads: range | list[int], written: bool) -> None:
    flags = np.zeros(SECTORS, bool)
    region = Region(
        BASE, np.zeros(SECTORS * SECTOR, np.uint8), "array", True, read={2: np.zeros_like(flags)}, written=flags
    )
    column, row = np.array(blocks)[:, None] + BASE, np.array(threads)[None, :]
    ArrayPart(region, Sum(column, row), 4, None, slice(None)).mark_sectors(written=written)
    assert region.read is not None
    touched = np.flatnonzero(flags if written else region.read[2])
    assert touched.tolist() == np.unique((column + row - BASE) // SECTOR).tolist()
