"""Loads whose values nothing reads: ptxas removes them (measured on an H200; docs/evidence/generators.md)."""

import numpy as np
import pytest

import ptxcount
from ptxcount.util.errors import OutOfBoundsError
from tests.ptxcount.snippets import module

#: One load of 4 bytes per thread, whose value is stored.
READ = "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;"
ADDRESSES = (
    "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u32 %r0, %tid.x; "
    "mad.wide.u32 %rd1, %r0, 4, %rd1; mad.wide.u32 %rd2, %r0, 4, %rd2; "
)


def _count(code: str, source: int = 32) -> ptxcount.LaunchCounters:
    shared = ".shared .align 16 .b8 cells[1024];"
    arrays = [np.ones(source, np.uint32), np.zeros(32, np.uint32)]
    return ptxcount.count(module(ADDRESSES + code, 2, shared), None, 1, 32, arrays)


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        ("ld.global.u32 %r2, [%rd1];", 1),
        ("setp.lt.u32 %p1, %r0, 9; @%p1 ld.global.u32 %r2, [%rd1];", 1),
        ("ld.u32 %r2, [%rd1];", 1),
        ("ld.volatile.global.u32 %r2, [%rd1];", 2),
        ("ld.relaxed.gpu.global.u32 %r2, [%rd1];", 2),
        ("ld.global.u32 %r2, [%rd1+0]; add.u32 %r0, %r2, 1;", 1),  # READ repeats it
    ],
)
def test_removed_loads_are_not_counted(load: str, requests: int) -> None:
    counters = _count(load + READ)
    assert counters.loads.requests == requests
    assert counters.distinct_sectors == (4, 4)


def test_unread_load_reads_no_sector_from_dram() -> None:
    counters = _count("ld.global.u32 %r2, [%rd1+128]; " + READ, source=64)
    assert counters.distinct_sectors == (4, 4)
    assert counters.loads.useful_bytes == 32 * 4


def test_unread_load_in_shared_memory_costs_no_wavefront() -> None:
    cells = "mov.u32 %r5, cells; mad.lo.u32 %r6, %r0, 4, %r5; st.shared.u32 [%r6], %r0; "
    counters = _count(cells + "ld.shared.u32 %r2, [%r6]; " + READ)
    assert (counters.shared_loads.requests, counters.shared_stores.requests) == (0, 1)


def test_unread_load_is_still_checked() -> None:
    with pytest.raises(OutOfBoundsError, match="128 bytes"):
        _count("ld.global.u32 %r2, [%rd1+4]; " + READ)
