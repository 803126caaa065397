"""The instrument's own kernels, executed on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwatch.counting import transactions
from kernelwatch.instrument import tools
from ptxcount.execute import run
from ptxcount.given import Argument

_DTYPE = "complex128"


@pytest.mark.parametrize("length", [1, 15, 16, 17, 4095, 4096, 4097, 15003])
def test_device_copy(length: int) -> None:
    """All bytes that were asked for are copied, and not one more; its accesses are those of an ideal copy."""
    copied = transactions.count(tools.DEVICE_COPY, _DTYPE, size=tools.elements(length), length=length)
    assert copied.problem() is None
    if length % tools.WIDTH == 0:
        totals = copied.counters.totals()
        assert totals["load_sectors"] == totals["store_sectors"] == length // 32 + (length % 32 > 0)


def test_flush_reads_all_and_writes_nothing() -> None:
    """Every sector of the array is read once."""
    array = np.ones(4096, _DTYPE)
    text = tools.FLUSH_L2.ptx(_DTYPE, arch="sm_90")
    geometry = tools.FLUSH_L2.geometry(size=len(array))
    never = np.zeros(1, _DTYPE)
    args: list[Argument] = [never, array, np.int64(len(array))]
    totals = run(text, "flush_l2", geometry.grid, geometry.block, args).totals()
    assert totals["load_sectors"] * 32 == array.nbytes
    assert totals["store_requests"] == 0
