"""Counters against a count with sets; test_fuzz.py and test_everyday.py do the same for whole kernels."""

import operator
import tracemalloc
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount.counting import transactions
from ptxcount.counting.counters import LaunchCounters
from ptxcount.counting.rule_sums import sum_rules
from ptxcount.engine import execute
from ptxcount.ptx import alignment
from ptxcount.ptx.alignment import Residue
from tests.ptxcount import by_sets, sources
from tests.ptxcount.machine_code_kernels import kernel
from tests.ptxcount.snippets import execute_snippet, module

RULES = (
    "count_global", "count_global_atomics", "count_load_wavefronts", "count_store_wavefronts", "count_shared_atomics",
    "count_local_sectors",
)  # fmt: skip
#: Functions that draw the elements of lanes: random, one lane apart, lanes n and n ^ 1 (or n ^ 2) equal, repeated end.
PLACES: list[Callable[[Any], Any]] = [
    lambda rng: rng.integers(0, 64, 32),
    lambda rng: rng.integers(0, 512, 32),
    lambda rng: np.where(np.arange(32) == rng.integers(0, 32), 1, 0),
    lambda rng: rng.integers(0, 64, 16).repeat(2),
    lambda rng: rng.integers(0, 64, (8, 1, 2)).repeat(2, axis=1).ravel(),
    lambda rng: np.where(np.arange(32) < rng.integers(1, 33), np.arange(32), np.arange(32) % 4),
]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_rules_count_as_sets_do(name: str, width: int) -> None:
    rng = np.random.default_rng(width)
    rule = getattr(transactions, name)
    for draw, dtype, active_share, _ in product(PLACES, ("i8", "u8"), (0.7, 1.0), range(3)):
        places = draw(rng).astype(dtype) * width
        threads = int(rng.integers(1, 33))
        lanes = rng.random(32) < active_share
        lanes[threads:] = False
        lanes[int(rng.integers(0, threads))] = True  # each request has an active lane
        expected = getattr(by_sets, name)([int(a) if on else None for a, on in zip(places, lanes, strict=True)], width)
        small_block = places[None, :threads]
        assert sum_rules(rule, small_block, lanes[None, :threads], (1, threads), width) == expected
        two_warps, first_warp = np.tile(places, 2)[None, :], np.r_[lanes, [False] * 32][None, :]
        assert sum_rules(rule, two_warps, first_warp, (1, 64), width) == expected
        if lanes[:threads].all():
            everyone, three_blocks = np.ones((1, 1), bool), small_block.repeat(3, axis=0)
            assert sum_rules(rule, small_block, everyone, (1, threads), width) == expected
            assert sum_rules(rule, three_blocks, everyone, (3, threads), width) == [3 * count for count in expected]


def test_unknown_amounts_are_refused() -> None:
    counters = LaunchCounters(0)
    assert counters.loads.sectors_per_request == 0  # no requests
    with pytest.raises(AttributeError, match="LaunchCounters has no 'stors'; accesses are by loads, stores, "):
        _ = counters.stors
    for name in ("sector", "sector_per_request"):
        with pytest.raises(
            AttributeError, match=r"Amounts has no 'sector'; allowed are requests, sectors, .*_per_request"
        ):
            getattr(counters.loads, name)


@pytest.mark.parametrize("first", [0, (1 << 32) - 256, (1 << 32) - 128, (1 << 41) - 512])
@pytest.mark.parametrize("apart", [4, 1 << 32, (1 << 32) + 4])
def test_far_addresses_are_distinct(first: int, apart: int) -> None:
    lanes = np.arange(32) % 3 > 0
    addresses = first + 4 * np.arange(32) + apart * (np.arange(32) % 2)
    for rows in (addresses, addresses.reshape(4, 8).T.ravel()):  # in order, and every eighth
        active = [int(address) if on else None for address, on in zip(rows, lanes, strict=True)]
        counts = [int(count[0]) for count in transactions.count_global(rows[None, :], lanes[None, :], 4)]
        assert counts == by_sets.count_global(active, 4)


@pytest.mark.parametrize("threads", [1, 7, 8, 9, 31, 32, 33, 64, 65])
@pytest.mark.parametrize(("width", "offset"), [(4, 0), (4, 28), (8, 24), (1, 31)])
def test_distinct_sectors_include_the_last(threads: int, width: int, offset: int) -> None:
    """Two blocks are 1,024 bytes apart, so they share no sector. ``red`` reads and writes each sector."""
    name, register = {1: ("u8", "%r4"), 4: ("u32", "%r4"), 8: ("u64", "%rd4")}[width]
    body = f"""
        ld.param.u64 %rd1, [p0]; mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd1, %r1, 1024, %rd1;
        mul.wide.u32 %rd2, %r0, {width}; add.s64 %rd2, %rd2, %rd1;
    """
    touched = 2 * len({(offset + width * t) // 32 for t in range(threads)})
    for code, (read, written) in (
        (f"ld.global.{name} {register}, [%rd2+{offset}]; cvt.u64.{name} %rd5, {register};", (touched, 0)),
        (f"st.global.{name} [%rd2+{offset}], {register};", (0, touched)),
        (f"red.global.add.{name} [%rd2+{offset}], {register};", (touched, touched)),
    ):
        if width > 1 or "red" not in code:
            arguments, text = [np.zeros(2048, np.uint8)], module(body + code, 1)
            counters = execute_snippet(text, arguments, threads=threads, blocks=2, distinct=True)
            assert counters.distinct_sectors == (read, written)


#: Bytes between 32 threads -> sectors fetched if a miss returns 64 bytes (two sectors), and 128 bytes (four).
FETCHED = {4: (4, 4), 32: (32, 32), 64: (64, 64), 96: (32 * 2, 24 * 4), 128: (32 * 2, 32 * 4), 256: (32 * 2, 32 * 4)}


@pytest.mark.parametrize("apart", FETCHED)
def test_fetched_sectors_follow_the_qualifier(apart: int) -> None:
    default, hinted = FETCHED[apart]
    for hint, fetched in {"": default, ".L2::64B": default, ".L2::128B": hinted, ".L2::256B": hinted}.items():
        body = f"ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd2, %r0, {apart}, %rd1; ld.global{hint}.u32 %r4, [%rd2];"
        body += "mov.u32 %r5, %r4;"
        given = [np.zeros(8192, np.uint8)]
        counters = execute_snippet(module(body, 1), given, distinct=True)
        assert (counters.distinct_sectors, counters.fetched_sectors) == ((32 * min(apart, 32) // 32, 0), fetched)


@pytest.mark.parametrize("space", ["shared", "local"])
def test_many_blocks_need_little_memory(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 blocks have 125 MiB of memory ``x``; the chunks, of at most 8 MiB, need less than 16 MiB at any time."""
    monkeypatch.setattr(execute, "CHUNK_BYTES", 8 << 20)
    code = f".{space} .b8 x[32768]; .reg .b32 %r1; mov.u32 %r1, %ctaid.x; st.{space}.u32 [x], %r1; ret;"
    tracemalloc.start()
    try:
        execute.execute_kernel(f".entry k() {{ {code} }}", "k", (4000, 1, 1), (1, 1, 1), [])
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_code_of_headers_has_lines_of_the_kernel() -> None:
    """``atomicAdd`` is a function of a header. Only in `histogram`, such lines have ``local``."""
    bins, data = np.zeros(16, np.uint32), np.arange(100, dtype=np.uint8)
    result = sources.execute("features", "histogram", [bins, data, np.int32(100)], threads=64)
    lines = (sources.FOLDER / "features.cu").read_text(encoding="utf-8").splitlines()
    atomics = {line for (_, line), accesses in result.by_line().items() if any(a.kind == "atomic" for a in accesses)}
    assert atomics == {n for n, line in enumerate(lines, start=1) if "atomicAdd(&" in line and ("local" in line)}
    assert {Path(str(file)).name for file, _ in result.by_line()} == {"features.cu"}


_HALVES = "<ld.shared.b16 %h0, [%r3+{}]; ld.shared.b16 %h1, [%r3+{}]; st.global.v2.b16 [%d3], {{%h0, %h1}};>"
_PAIRS = "<shr.u32 %r10, %r0, 1; mad.lo.u32 %r6, %r10, 16, %r1;>"
_COLUMNS = (
    "<and.b32 %r10, %r0, 1; mad.lo.u32 %r11, %r10, 128, %r1; shr.u32 %r12, %r0, 1; mad.lo.u32 %r6, %r12, 8, %r11;>"
)
#: Kernels of a warp in the shorthand of machine_code_kernels.py, where ``ld4`` loads a word at byte 4 of a lane's 16.
#: Requests and wavefronts of the loads after merges by ptxas (sm_90, nvcc 13.0.88). None: ptxas merges nothing.
MERGED: dict[str, tuple[int, int] | None] = {
    "ld0 ld4 ld8 ld12": (1, 4), "ld0 ld8 ld12": (1, 4), "ld8 ld12 ld16 ld20": (2, 8), "ld0 ld4 ld32 ld36": (2, 8),
    "ld0 ld4 <bar.sync 0;> ld8 ld12": (2, 8), "ld0 ld4 <mov.u32 %r3, %r5;> ld8 ld12": (2, 8),
    "ld[%r1]:0 ld[%r1]:4 ld[%r1]:8 ld[%r1]:12": (1, 2),  # all lanes equal
    f"{_PAIRS} ld[%r6]:0 ld[%r6]:4": (1, 2), f"{_PAIRS} ld[%r6]:0 ld[%r6]:4 ld[%r6]:8 ld[%r6]:12": (1, 2),
    "ld[w]:0 ld[x]:0": (1, 1),  # two neighbouring variables
    # Nothing merges, and all lanes skip the second load.
    "<mad.lo.u32 %r6, %r9, 4, %r3; setp.lt.u32 %p2, %r0, 32;> ld[%r6]:0 <mov.u32 %r41, 0; @%p2 bra BEHIND;> ld[%r6]:4 "
    "<BEHIND:>": (1, 4),
    f"{_COLUMNS} ld[%r6]:0 ld[%r6]:16": (2, 4),  # two words per bank; four as 8 bytes
    _HALVES.format(0, 2): (1, 4), _HALVES.format(0, 2).replace("b16", "s16"): None,
    "<ld.shared.u8 %r10, [%r3]; ld.shared.u8 %r11, [%r3+1]; st.global.v2.u8 [%d3], {%r10, %r11};>": None,
    "<ld.shared.u64 %d6, [%r3]; ld.shared.u64 %d7, [%r3+8]; st.global.v2.u64 [%d3], {%d6, %d7};>": (1, 4),
}  # fmt: skip


@pytest.mark.parametrize("code", MERGED)
def test_loads_merge_as_in_ptxas(code: str) -> None:
    arguments: list[Any] = [np.zeros(32 * 2048, np.uint8), np.zeros(32 * 2048, np.uint8), np.int32(1)]
    counters = execute.execute_kernel(
        kernel("k", code), "k", (1, 1, 1), (32, 1, 1), arguments, races="off", unwritten="off"
    )
    assert counters.merged.get("load") == MERGED[code]


@pytest.mark.parametrize(("rule", "compute"), [
    (alignment._add, operator.add), (alignment._multiply, operator.mul), (alignment._mask, operator.and_),
    (alignment._RULES[2]["or"], operator.or_), (alignment._RULES[2]["xor"], operator.xor),
    (alignment._RULES[2]["sub"], operator.sub),
])  # fmt: skip
def test_residues_hold_for_all_numbers(rule: Callable[..., Residue], compute: Callable[[int, int], int]) -> None:
    residues = [Residue(2**k, remainder) for k in range(5) for remainder in range(2**k)]
    for a, b in product(residues, residues):
        numbers = [range(residue.remainder, 64, residue.modulus) for residue in (a, b)]
        results = {compute(x, y) for x, y in product(*numbers)}
        combined = rule(a, b)
        assert {number % combined.modulus for number in results} == {combined.remainder}, (a, b)
        if b.modulus == 16 and compute in (operator.add, operator.and_, operator.sub) and combined.modulus < 16:
            # twice the modulus would not hold
            assert len({number % (2 * combined.modulus) for number in results}) > 1, (a, b)


@pytest.mark.parametrize("count", [0, 3, 4, 31, 32, 2**32 - 1, -1])
def test_shift_by_any_literal_is_analysed(count: int) -> None:
    """The accesses to shared memory make ptxcount find the residue of the shifted register."""
    body = f"""
        mov.u32 %r4, 3; shl.b32 %r1, %r4, {count}; and.b32 %r2, %r1, 4;
        st.shared.u32 [%r2], 7; ld.shared.u32 %r3, [%r2];
        ld.param.u64 %rd1, [p0]; st.global.v2.u32 [%rd1], {{%r1, %r3}};
    """
    out = np.zeros(2, np.uint32)
    execute_snippet(module(body, 1, functions=".shared .align 16 .b8 s[16];"), [out], threads=1, dynamic_shared=16)
    assert out.tolist() == [3 << count & 0xFFFFFFFF if 0 <= count < 32 else 0, 7]


def test_names_of_totals_stay() -> None:
    """Limits in ``ptxcount.toml`` use these names."""
    expected = {"threads", "thread_instructions", "warp_instructions", "atomic_together", "shared_atomic_together"}
    for kind in ("load", "store", "atomic"):
        in_global = ("requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "useful_bytes")
        in_shared = ("requests", "wavefronts", "bank_conflicts", "useful_bytes")
        expected |= {f"{kind}_{amount}" for amount in in_global}
        expected |= {f"shared_{kind}_{amount}" for amount in in_shared}
    assert set(LaunchCounters(0).totals()) == expected
