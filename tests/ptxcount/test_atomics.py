"""Counts of atomics of one warp: sectors and wavefronts, as on an H200."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxcount.isa.atomic_operations import ATOMICS, apply_operation
from tests.ptxcount.snippets import execute_snippet, module

#: Element of each lane: %r1 from its number %r0.
PLACES = {
    "one address": "and.b32 %r1, %r0, 0;",
    "neighbours": "mov.u32 %r1, %r0;",
    "two a place": "shr.u32 %r1, %r0, 1;",
    "stride 8": "shl.b32 %r1, %r0, 3;",
    "four places": "and.b32 %r1, %r0, 3;",
}
#: Atomics, their width, and counts by place; None where not measured. Each place has sectors in global memory, then
#: wavefronts in shared memory (H200, driver 580.159.04, nvcc 13.0.88, 2026-11-23).
READ = [
    ("add.u32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("add.u32 _, [A], 1", 4, [32, 4, 4, 32, 8], [1, 1, 1, 8, 1]),
    ("max.u32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("exch.b32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("cas.b32 %r5, [A], %r2, 7", 4, [32, 4, 4, 32, 8], [64, 2, 4, 16, 16]),
    ("add.f32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [64, 2, 4, 16, None]),
    ("add.u64 %rd5, [A], %rd6", 8, [32, 8, None, 32, None], [96, 4, 8, None, None]),
]


def _count_atomic(atomic: str, code: str, width: int, space: str, threads: int = 32, blocks: int = 1) -> dict[str, int]:
    """Count a kernel whose threads use the result of an atomic."""
    base = (
        "mov.u32 %r7, s; mad.lo.u32 %r6, %r1, {0}, %r7;" if space == "shared" else "mad.wide.u32 %rd2, %r1, {0}, %rd1;"
    )
    address = "%r6" if space == "shared" else "%rd2"
    body = f"""
        .shared .align 8 .b8 s[2048]; ld.param.u64 %rd1, [p0]; mov.u32 %r7, s; mov.u32 %r2, 3; mov.u64 %rd6, 3;
        mad.lo.u32 %r8, %r0, 64, %r7; mov.u64 %rd9, 0;
        {"".join(f"st.shared.u64 [%r8+{8 * k}], %rd9;" for k in range(8))}
        bar.sync 0; {code} {base.format(width)} atom.{space}.{atomic.replace("A", address)};
        mad.wide.u32 %rd3, %r0, 8, %rd1; st.global.u32 [%rd3+4096], %r5; st.global.u64 [%rd3+4096], %rd5;
    """
    memory = np.zeros(2048, np.uint32)
    return execute_snippet(module(body, 1), [memory], threads=threads, blocks=blocks).totals()


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("atomic", "width", "sectors", "wavefronts"), READ)
def test_one_warp(atomic: str, width: int, sectors: list[int | None], wavefronts: list[int | None], space: str) -> None:
    """The compiler cannot see that all lanes share an address."""
    for (place, code), read in zip(PLACES.items(), sectors if space == "global" else wavefronts, strict=True):
        totals = _count_atomic(atomic, code, width, space)
        if read is not None:
            assert totals["atomic_sectors" if space == "global" else "shared_atomic_wavefronts"] == read, place
        if space == "shared" and read is not None and wavefronts[1] is not None:  # distinct neighbours
            assert totals["shared_atomic_bank_conflicts"] == read - wavefronts[1], place
        together = {"one address": 32, "two a place": 2, "four places": 8}.get(place, 1)
        assert totals[f"{'shared_' * (space == 'shared')}atomic_together"] == together


@pytest.mark.parametrize("code", PLACES.values(), ids=PLACES)
def test_used_sum_of_ones(code: str) -> None:
    """A sum of ones counts like one of any numbers if its result is used."""
    totals = [_count_atomic(f"add.u32 %r5, [A], {number}", code, 4, "shared") for number in ("1", "%r2")]
    assert totals[0]["shared_atomic_wavefronts"] == totals[1]["shared_atomic_wavefronts"]


@pytest.mark.parametrize(("atomic", "sectors", "wavefronts"), [
    ("add.u32 %r5, [A], %r2", 1, 1), ("add.u32 _, [A], %r2", 1, 1), ("max.u32 _, [A], %r2", 1, 1),
    ("max.u32 %r5, [A], %r2", 32, 32), ("exch.b32 _, [A], %r2", 32, 32), ("add.f32 _, [A], %r2", 32, 64),
])  # fmt: skip
def test_uniform_addresses(atomic: str, sectors: int, wavefronts: int) -> None:
    """Integer sums are combined within the warp first; so is a maximum without a result."""
    for code in ("mov.u32 %r1, 0;", "mov.u32 %r1, %ctaid.x;"):  # also one per block
        totals = _count_atomic(atomic, code, 4, "global", blocks=3)
        assert (totals["atomic_sectors"], totals["atomic_together"]) == (3 * sectors, 3 * 32)
        assert _count_atomic(atomic, code, 4, "shared", blocks=3)["shared_atomic_wavefronts"] == 3 * wavefronts


#: Addresses of 3000 threads by their numbers, some of them equal.
MEETINGS: dict[str, Callable[[Any], Any]] = {
    "one address": lambda n: 0 * n,
    "four": lambda n: n % 4,
    "one and many": lambda n: np.where(n % 3, 0, n),
    "runs": lambda n: n // 77,
    "none": lambda n: n,
}
#: Operations, dtype, and operands from random numbers.
ORDERS = [
    ("add", "u4", 2**32), ("add", "u8", 2**63), ("add", "f4", 1000), ("min", "i4", 1000), ("max", "u8", 1000),
    ("and", "u4", 2**32), ("or", "u4", 2**32), ("xor", "u8", 2**63), ("exch", "u4", 50), ("cas", "u4", 2),
    ("cas", "u8", 9), ("cas", "u2", 300), ("inc", "u4", 1), ("inc", "u4", 3), ("dec", "u4", 1), ("dec", "u4", 3),
    ("add.noftz", "f2", 9),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "below"), ORDERS)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_order_of_conflicting_threads(name: str, dtype: str, below: int, meeting: str) -> None:
    """Old values and final memory are exact for threads in sequence."""
    rng = np.random.default_rng(below)
    operation = ATOMICS[name]
    index = MEETINGS[meeting](np.arange(3000))
    limits = 700 if name in ("inc", "dec") else 0
    operands = [
        rng.integers(0, below, 3000).astype(dtype) + np.dtype(dtype).type(limits) for _ in range(operation.operands)
    ]
    memory, expected = (rng.integers(0, 9, 3000).astype(dtype) for _ in range(2))
    expected[:] = memory
    old = apply_operation(operation, memory, index, operands, returns=True)
    with np.errstate(over="ignore"):
        for thread, place in enumerate(index):
            assert old[thread] == expected[place], thread
            values = (operand[thread : thread + 1] for operand in operands)
            expected[place : place + 1] = operation.update(expected[place : place + 1], *values)
    assert memory.tobytes() == expected.tobytes()
