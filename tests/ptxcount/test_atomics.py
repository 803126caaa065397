"""Counts of atomics of one warp: sectors and wavefronts, as on an H200."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxcount.counting.access import RETRY_CAVEAT, WINNER_CAVEAT
from ptxcount.isa.atomic_operations import ATOMICS, apply_operation
from tests.ptxcount.snippets import execute_snippet, module

#: Code that computes %r1, the element of a lane, from its number %r0; and the most lanes on one element.
PLACES = {
    "one address": ("and.b32 %r1, %r0, 0;", 32), "neighbours": ("mov.u32 %r1, %r0;", 1),
    "two a place": ("shr.u32 %r1, %r0, 1;", 2), "stride 8": ("shl.b32 %r1, %r0, 3;", 1),
    "four places": ("and.b32 %r1, %r0, 3;", 8),
}  # fmt: skip
#: Atomic, its width, and counts for each of `PLACES`: sectors in global memory, wavefronts in shared memory. None: not
#: measured (H200, driver 580.159.04, nvcc 13.0.88, 2026-11-23).
READ = [
    ("add.u32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("add.u32 _, [A], 1", 4, [32, 4, 4, 32, 8], [1, 1, 1, 8, 1]),
    ("max.u32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("exch.b32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [32, 1, 2, 8, 8]),
    ("cas.b32 %r5, [A], %r2, 7", 4, [32, 4, 4, 32, 8], [64, 2, 4, 16, 16]),
    ("add.f32 %r5, [A], %r2", 4, [32, 4, 4, 32, 8], [64, 2, 4, 16, None]),
    ("add.u64 %rd5, [A], %rd6", 8, [32, 8, None, 32, None], [96, 4, 8, None, None]),
    ("exch.b64 %rd5, [A], %rd6", 8, [None] * 5, [32, 2, 4, None, None]),
    ("cas.b64 %rd5, [A], %rd6, 7", 8, [None] * 5, [64, 4, 8, None, None]),
]


def _count_atomic(
    atomic: str, code: str, width: int, space: str, threads: int = 32, blocks: int = 1, end: str = ""
) -> dict[str, int]:
    """Return the totals of a kernel of an atomic at element %r1; each thread stores its result behind the elements."""
    base, address = f"mad.wide.u32 %rd2, %r1, {width}, %rd1;", "%rd2"
    if space == "shared":
        base, address = f"mov.u32 %r7, s; mad.lo.u32 %r6, %r1, {width}, %r7;", "%r6"
    body = f"""
        .shared .align 8 .b8 s[2048]; ld.param.u64 %rd1, [p0]; mov.u32 %r7, s; mov.u32 %r2, 3; mov.u64 %rd6, 3;
        cvt.u64.u32 %rd8, %r0;
        mad.lo.u32 %r8, %r0, 64, %r7; mov.u64 %rd9, 0;
        {"".join(f"st.shared.u64 [%r8+{8 * k}], %rd9;" for k in range(8))}
        bar.sync 0; {code} {base} atom.{space}.{atomic.replace("A", address)};
        mad.wide.u32 %rd3, %r0, 8, %rd1; st.global.u32 [%rd3+4096], %r5; st.global.u64 [%rd3+4096], %rd5;
        {end}
    """
    memory = np.zeros(2048, np.uint32)
    return execute_snippet(module(body, 1), [memory], threads=threads, blocks=blocks).totals()


@pytest.mark.parametrize(("atomic", "width", "sectors"), [row[:3] for row in READ])
def test_global_atomics_of_a_warp_as_on_h200(atomic: str, width: int, sectors: list[int | None]) -> None:
    for (place, (code, most_lanes)), read in zip(PLACES.items(), sectors, strict=True):
        totals = _count_atomic(atomic, code, width, "global")
        assert read is None or totals["atomic_sectors"] == read, place
        assert totals["atomic_together"] == most_lanes


@pytest.mark.parametrize(("atomic", "width", "wavefronts"), [(*row[:2], row[3]) for row in READ])
def test_shared_atomics_of_a_warp_as_on_h200(atomic: str, width: int, wavefronts: list[int | None]) -> None:
    without_conflicts = wavefronts[1]  # neighbours are in different banks
    assert without_conflicts is not None
    for (place, (code, most_lanes)), read in zip(PLACES.items(), wavefronts, strict=True):
        totals = _count_atomic(atomic, code, width, "shared")
        if read is not None:
            assert totals["shared_atomic_wavefronts"] == read, place
            assert totals["shared_atomic_bank_conflicts"] == read - without_conflicts, place
        assert totals["shared_atomic_together"] == most_lanes


#: Atomics in shared memory, some of which are loops of ``LDS`` and ``ATOMS.CAST.SPIN``. For each of `PLACES`:
#: loads of the loop, their wavefronts, and those without conflicts (H200, driver 580.159.04, nvcc 13.0.88, 2026-11-29).
_FLOATS = [(32, 32, 32), (1, 1, 1), (2, 2, 2), (8, 36, 8), (8, 8, 8)]
_PAIRS = [(32, 32, 32), (1, 2, 2), (2, 2, 2), (8, 72, 16), (8, 12, 12)]
LOOPS = [
    ("add.f32 %r5, [A], %r2", 4, _FLOATS), ("add.f64 %rd5, [A], %rd6", 8, _PAIRS),
    ("add.u64 %rd5, [A], %rd6", 8, _PAIRS), ("xor.b64 %rd5, [A], %rd6", 8, _PAIRS),
    ("cas.b64 %rd5, [A], %rd6, 7", 8, [(0, 0, 0)] * 5), ("add.u32 %r5, [A], %r2", 4, [(0, 0, 0)] * 5),
]  # fmt: skip


@pytest.mark.parametrize(("atomic", "width", "loads"), LOOPS)
def test_each_round_of_a_loop_loads(atomic: str, width: int, loads: list[tuple[int, int, int]]) -> None:
    for (place, (code, _)), expected in zip(PLACES.items(), loads, strict=True):
        totals = _count_atomic(atomic, code, width, "shared")
        requests, wavefronts, conflicts = (
            totals.get(f"shared_load_{name}", 0) for name in ("requests", "wavefronts", "bank_conflicts")
        )
        assert (requests, wavefronts, wavefronts - conflicts) == expected, place


@pytest.mark.parametrize(("atomic", "width", "loads"), LOOPS)
def test_loop_of_an_aggregated_sum_loads_once(atomic: str, width: int, loads: list[tuple[int, int, int]]) -> None:
    """All lanes access one address. Only integer sums are aggregated: one lane adds the sum of all.

    That lane's atomic is a loop only for 64 bits. Other operations load as often as in `LOOPS`.
    """
    blocks, loads_per_warp = 3, loads[0][0]  # the first of `PLACES` is one address
    if atomic.startswith(("add.u64", "add.u32")):
        loads_per_warp = 1 if width == 8 else 0
    totals = _count_atomic(atomic, "mov.u32 %r1, 0;", width, "shared", blocks=blocks)
    assert totals.get("shared_load_requests", 0) == blocks * loads_per_warp


def test_loop_among_swaps_has_its_caveat() -> None:
    """The sum is a loop in machine code; the swaps before and after it are single instructions."""
    swap, total = "atom.shared.exch.b128 %q1, [s], %q2;", "atom.shared.add.f64 %fd1, [s], 0d3FF0000000000000;"
    begin = ".shared .align 16 .b64 s[2]; st.shared.v2.u64 [s], {0, 0}; bar.sync 0; mov.b128 %q2, {%rd1, %rd2};"
    text = module(f"{begin} {swap} {total} {swap}", 0, ".reg .f64 %fd<2>; .reg .b128 %q<3>;")
    caveats = execute_snippet(text, []).caveats()
    assert caveats == {"shared atomic": RETRY_CAVEAT}


#: Loop with a swap -> True if the result of the swap ends the loop.
SWAPS = {
    "{swap} setp.ne.u32 %p1, %r5, %r4; mov.u32 %r4, %r5; @%p1 bra again;": True,
    "{swap} setp.eq.u32 %p1, %r5, 0; @%p1 st.global.u32 [%rd1+8], %r5; add.u32 %r4, %r4, 1; "
    "setp.lt.u32 %p2, %r4, 2; @%p2 bra again;": False,
}


@pytest.mark.parametrize(("loop", "is_retried"), SWAPS.items())
@pytest.mark.parametrize("swap", ["cas.b32 %r5, [%rd1], %r4, %r3;", "exch.b32 %r5, [%rd1], %r4;"])
def test_only_swaps_that_end_a_loop_have_the_caveat(swap: str, loop: str, is_retried: bool) -> None:
    begin = "ld.param.u64 %rd1, [p0]; mov.u32 %r4, 0; add.u32 %r3, %r4, 1; again:"
    text = module(begin + loop.format(swap=f"atom.global.{swap}"), 1)
    caveats = execute_snippet(text, [np.zeros(4, np.uint32)]).caveats()
    assert caveats == ({"global atomic": WINNER_CAVEAT} if is_retried else {})


@pytest.mark.parametrize(("space", "expected"), [
    ("global", [0, 0x800000, 0x80800001]), ("shared", [1 + 32, 0x800000 + 32, 0x80800001 - 32]),
])  # fmt: skip
@pytest.mark.parametrize("target", ["%f2", "_"])
def test_only_global_sums_flush_subnormals(space: str, expected: list[int], target: str) -> None:
    """Each of 32 lanes adds the smallest subnormal, 1 in the last bit; to global sums, a subnormal is 0.

    The first of three numbers is subnormal. The others are the smallest normal number, and the negative of its upper
    neighbour. In shared memory, the bits of positive numbers grow by 32, and those of the negative number fall by 32.
    """
    base = "%rd1" if space == "global" else "s"
    text = module(
        ".shared .b32 s[3]; ld.param.u64 %rd1, [p0]; mov.b32 %f1, 0x1;\n"
        + "".join(f"ld.global.u32 %r3, [%rd1+{k}]; st.shared.u32 [s+{k}], %r3;" for k in (0, 4, 8)) + "bar.sync 0;\n"
        + "".join(f"atom.{space}.add.f32 {target}, [{base}+{k}], %f1;" for k in (0, 4, 8)) + "bar.sync 0;\n"
        + "".join(f"ld.{space}.u32 %r3, [{base}+{k}]; st.global.u32 [%rd1+{16 + k}], %r3;" for k in (0, 4, 8)), 1,
        ".reg .f32 %f<3>;",
    )  # fmt: skip
    memory = np.array([1, 0x800000, 0x80800001, 0, 0, 0, 0], np.uint32)
    execute_snippet(text, [memory], threads=32)
    assert memory[4:].tolist() == expected


@pytest.mark.parametrize("code", [code for code, _ in PLACES.values()], ids=PLACES)
def test_used_sum_of_ones_costs_as_any_sum(code: str) -> None:
    """If the result is unused, a sum of ones is cheaper: see the second row of `READ`."""
    ones, others = (_count_atomic(f"add.u32 %r5, [A], {number}", code, 4, "shared") for number in ("1", "%r2"))
    assert ones["shared_atomic_wavefronts"] == others["shared_atomic_wavefronts"]


#: Atomics on an address that ptxas knows to be uniform: sectors and wavefronts of a warp. If it is 1 sector, machine
#: code of nvcc 13.0.88 has a vote, a sum and one lane's atomic; an H200 agrees on ``add`` and ``or``.
SUMMED = [
    *((f"{name} {target}, [A], {value}", 1, 1) for name in ("add.u32", "add.s32") for target in ("%r5", "_")
      for value in ("1", "%r2", "%r0")),
    *((f"{name} _, [A], {value}", 1, 1) for value in ("7", "%r0")
      for name in ("min.u32", "max.s32", "and.b32", "or.b32", "xor.b32")),
    *((f"{name} %r5, [A], %r2", 32, 32) for name in ("min.u32", "max.s32", "and.b32", "or.b32", "xor.b32")),
    *((f"{name} _, [A], %r2", 32, 32) for name in ("inc.u32", "dec.u32", "exch.b32")),
    *((f"add.u64 {target}, [A], {value}", 1, 2) for target in ("%rd5", "_") for value in ("1", "%rd6")),
    *((f"{name} _, [A], {value}", 32, 96) for name, value in (
        ("add.u64", "%rd8"), ("min.u64", "%rd6"), ("max.s64", "7"), ("and.b64", "%rd6"), ("or.b64", "1"))),
    ("add.f32 _, [A], %r2", 32, 64),
]  # fmt: skip


@pytest.mark.parametrize(("atomic", "sectors", "wavefronts"), SUMMED)
def test_uniform_address_may_be_aggregated(atomic: str, sectors: int, wavefronts: int) -> None:
    blocks, width = 3, 8 if "64" in atomic else 4
    totals = _count_atomic(atomic, "mov.u32 %r1, %ctaid.x;", width, "global", blocks=blocks)
    assert (totals["atomic_sectors"], totals["atomic_together"]) == (blocks * sectors, blocks * 32)
    totals = _count_atomic(atomic, "mov.u32 %r1, 0;", width, "shared", blocks=blocks)
    assert totals["shared_atomic_wavefronts"] == blocks * wavefronts
    if sectors == 1:
        assert not totals["shared_atomic_bank_conflicts"]


def test_add_with_used_result_aggregates_only_full_warps() -> None:
    for threads, sectors in ((20, 20), (32, 1)):
        totals = _count_atomic("add.u32 %r5, [A], %r0", "mov.u32 %r1, 0;", 4, "global", threads)
        assert totals["atomic_sectors"] == sectors


#: Computations of each lane's element, %r1, and True if ptxas aggregates the lanes (machine code of nvcc 13.0.88). All
#: active lanes have the same element; ptxas does not know that in the rows with False. %r2 is 3, and %r3 is 0.
SEEN = {
    "ld.global.u32 %r1, [%rd1];": True,
    "ld.volatile.shared.u32 %r1, [s];": True,
    "shfl.sync.idx.b32 %r1, %r0, 5, 31, -1;": True,
    "mov.u32 %r5, 31; shfl.sync.idx.b32 %r1|%p1, %r0, %r2, %r5, -1;": True,
    "mov.u32 %r5, 31; shfl.sync.idx.b32 %r1, %r0, %r2, %r5, -1; mov.u32 %r5, 15;": True,
    "mov.u32 %r5, 31; mov.u32 %r5, 15; shfl.sync.idx.b32 %r4, %r0, 0, %r5, -1; and.b32 %r1, %r4, 0;": False,
    "redux.sync.max.u32 %r1, %r0, -1;": True,
    "setp.gt.u32 %p1, %r0, 8; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;": True,
    "match.all.sync.b32 %r1, %r0, -1; and.b32 %r1, %r1, 1;": True,
    "mov.u32 %r1, %nctaid.x;": True,
    "mov.u32 %r1, 0; setp.gt.u32 %p1, %r0, 8; @%p1 bra E;": True,
    "mov.u32 %r1, 1; setp.gt.u32 %p1, %r2, 8; @%p1 bra L; mov.u32 %r1, 7; L:": True,
    "mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 bra L; mov.u32 %r1, %r4;": True,
    "mov.u32 %r1, %tid.y;": False,
    "shr.u32 %r1, %r0, 5;": False,
    "and.b32 %r1, %r0, 0; shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; and.b32 %r1, %r3, 0;": False,
    "shfl.sync.idx.b32 %r4, %r0, 0, 15, -1; and.b32 %r1, %r4, 0;": False,
    "match.any.sync.b32 %r4, %r2, -1; and.b32 %r1, %r4, 1;": False,
    "mov.u32 %r1, 7; setp.gt.u32 %p1, %r0, 40; @%p1 mov.u32 %r1, 3;": False,
    "mov.u32 %r1, 1; setp.gt.u32 %p1, %r0, 40; @%p1 bra L; mov.u32 %r1, 7; L:": False,
    "mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r3; @%p1 bra L; mov.u32 %r1, %r4;": False,
}  # fmt: skip


@pytest.mark.parametrize(("code", "is_seen"), SEEN.items())
def test_lanes_aggregate_if_ptxas_knows_the_address(code: str, is_seen: bool) -> None:
    totals = _count_atomic("add.u32 _, [A], %r2", f"and.b32 %r3, %r0, 0; {code}", 4, "global", end="E: ")
    lanes = 9 if "bra E" in code else 32  # lanes 0 to 8 do not branch to the end
    assert totals["atomic_sectors"] == (1 if is_seen else lanes)


#: Indices of elements from the numbers of 3000 threads; some threads share an element.
MEETINGS: dict[str, Callable[[Any], Any]] = {
    "one address": lambda n: 0 * n, "four": lambda n: n % 4, "one and many": lambda n: np.where(n % 3, 0, n),
    "runs": lambda n: n // 77, "none": lambda n: n,
}  # fmt: skip
#: Operation, dtype, and limit of random operands.
ORDERS = [
    ("add", "u4", 2**32), ("add", "u8", 2**63), ("add", "f4", 1000), ("min", "i4", 1000), ("max", "u8", 1000),
    ("and", "u4", 2**32), ("or", "u4", 2**32), ("xor", "u8", 2**63), ("exch", "u4", 50), ("cas", "u4", 2),
    ("cas", "u8", 9), ("cas", "u2", 300), ("inc", "u4", 1), ("inc", "u4", 3), ("dec", "u4", 1), ("dec", "u4", 3),
    ("add.noftz", "f2", 9),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "below"), ORDERS)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_atomics_execute_in_thread_order(name: str, dtype: str, below: int, meeting: str) -> None:
    rng = np.random.default_rng(below)
    operation = ATOMICS[name]
    index = MEETINGS[meeting](np.arange(3000))
    lowest = 700 if name in ("inc", "dec") else 0  # they wrap around at the operand
    operands = [(lowest + rng.integers(0, below, 3000)).astype(dtype) for _ in range(operation.operands)]
    memory = rng.integers(0, 9, 3000).astype(dtype)
    expected = memory.copy()
    old = apply_operation(operation, memory, index, operands, returns=True)
    with np.errstate(over="ignore"):
        for thread, place in enumerate(index):
            assert old[thread] == expected[place], thread
            values = (operand[thread : thread + 1] for operand in operands)
            expected[place : place + 1] = operation.update(expected[place : place + 1], *values)
    assert memory.tobytes() == expected.tobytes()
