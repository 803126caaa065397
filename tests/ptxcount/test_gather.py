"""Reads of whole warps, by the distance of their lanes, against reads of each lane."""

from __future__ import annotations

import numpy as np
import pytest

from ptxcount.lanes.symbolic_values import Sum
from ptxcount.machine.regions import ArrayPart, Region


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("blocks", [2, 16, 40])
@pytest.mark.parametrize("stride", [-1, 0, 1, 2, None])
def test_gather(stride: int | None, blocks: int, size: int) -> None:
    """Lanes at one address, at neighbours, elsewhere, or at no constant distance; in units before the array's end."""
    rng = np.random.default_rng(1)
    region = Region(1 << 40, rng.integers(0, 256, 4096 * size, np.uint8), "a", True)
    lanes = rng.permutation(32) if stride is None else np.arange(32) * stride - min(31 * stride, 0)
    thread = (lanes + np.array([0, 100, 7])[:, None]).reshape(1, -1)
    block = rng.integers(0, 4096 - int(thread.max()) - 1, (blocks, 1))
    block[0] = 4096 - int(thread.max()) - 2
    address = Sum(block * size + region.base, thread * size)
    part = ArrayPart(region, address, size, None, np.s_[:])
    units = region.units(size)
    for offset in (0, 1):
        assert (part.gather(offset) == units[block + thread + offset]).all()
