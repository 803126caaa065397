"""Races and unwritten reads of random programs against lists of accesses, and barriers of a warp's lanes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import LANES
from ptxcount.util import errors
from tests.ptxcount.snippets import PLACES, SHARED, execute_snippet, module, words_after
from tests.ptxcount.sources import compile_to_ptx

THREADS = 40
#: Name -> code that computes %r4, a mask, from the lane in %r8, and the same as a function of the lane.
MASKS: dict[str, tuple[str, Any]] = {
    "warp": ("mov.u32 %r4, -1;", lambda lane: (1 << LANES) - 1),
    "tiles of 8": ("and.b32 %r4, %r8, 24; shl.b32 %r4, 255, %r4;", lambda lane: 255 << (lane & 24)),
    "pairs": ("and.b32 %r4, %r8, 30; shl.b32 %r4, 3, %r4;", lambda lane: 3 << (lane & 30)),
    "itself": ("shl.b32 %r4, 1, %r8;", lambda lane: 1 << lane),
    "odd and even": (
        "and.b32 %r4, %r8, 1; shl.b32 %r4, 0x55555555, %r4;", lambda lane: 0x55555555 << (lane & 1)
    ),
}  # fmt: skip
#: Space -> name -> access to a word. In global memory, the last two order a block after all earlier accesses.
ACCESSES = {
    "shared": {"load": "ld.shared.u32 %r5, [%r6];", "store": "st.shared.u32 [%r6], %r3;",
               "wide": "st.shared.v2.u32 [%r6], {1, 2};", "atomic": "atom.shared.add.u32 %r5, [%r6], 1;"},
    "global": {"load": "ld.global.u32 %r5, [%rd2];", "store": "st.global.u32 [%rd2], %r3;",
               "wide": "st.global.v2.u32 [%rd2], {1, 2};", "atomic": "atom.global.add.u32 %r5, [%rd2+1024], 1;",
               "acquire": "ld.acquire.gpu.global.u32 %r5, [%rd2+1024];"},
}  # fmt: skip
#: Code after which two blocks have diverged.
APART = (
    "setp.lt.u32 %p2, %r2, 1; @%p2 bra ON; mad.lo.u32 %r6, %r0, 4, %r7; st.shared.u32 [%r6+256], %r0; ON: bar.sync 0;"
)


class Step(NamedTuple):
    """An access by threads ``first`` to ``stop`` of each block, or a barrier of their warps or blocks."""

    kind: str
    first: int
    stop: int
    #: Thread t accesses word (factor * t + shift) % 64.
    factor: int = 1
    shift: int = 0
    #: The only active block; None if all are.
    only: int | None = None

    def list_threads(self, blocks: int) -> list[int]:
        """Return the numbers in the launch of the active threads."""
        return [
            block * THREADS + thread
            for block in range(blocks) if self.only in (None, block)
            for thread in range(self.first, self.stop)
        ]  # fmt: skip

    def list_words(self, thread: int, *, shared: bool) -> list[int]:
        """Return the words that a thread accesses; in shared memory they are the same in each block."""
        word = ((thread % THREADS if shared else thread) * self.factor + self.shift) % 64
        return [word & ~1, word | 1] if self.kind == "wide" else [word]

    @property
    def guard(self) -> str:
        """Return the predicate of the active threads; empty if all are."""
        return "" if self.only is None and (self.first, self.stop) == (0, THREADS) else "@%p1 "


def draw_program(rng: np.random.Generator, space: str, blocks: int) -> list[Step]:
    """Draw a program; some first write all shared memory, and some have a store, two barriers and a load."""
    program = []
    if space == "shared" and rng.integers(2):
        program = [Step("store", 0, THREADS), Step("store", 0, 24, shift=THREADS), Step("block", 0, THREADS)]
    if rng.integers(2):
        shift, masks = int(rng.integers(32)), rng.choice([*MASKS], 2).tolist()
        program += [Step("store", 0, 32), *(Step(mask, 0, 32) for mask in masks), Step("load", 0, 1, shift=shift)]
    for kind in rng.choice(["load", "store", *ACCESSES[space], *MASKS, "block"], 6).tolist():
        ends = [0, 32, THREADS] if kind in MASKS else [0, 1, 2, 9, 32, 34, THREADS]
        first, stop = sorted(rng.choice(ends, 2, replace=False).tolist())
        factor, shift = int(rng.choice([0, 1, 1, 1, 3])), int(rng.choice([0, 0, 1, 2, 8, 16]))
        only = int(rng.integers(blocks)) if kind != "block" and rng.integers(3) == 0 else None
        program.append(Step(kind, first, stop, factor, shift, only))
    return program


class Model:
    """A launch as lists of accesses. It knows, for each thread, the accesses that are ordered before its next one."""

    def __init__(self, blocks: int, space: str) -> None:
        self.space, self.count = space, 0
        self.preceding: list[set[int]] = [set() for _ in range(blocks * THREADS)]
        #: The number, thread and kind of the accesses to each word.
        self.accesses: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        self.written: set[tuple[int, int]] = set()
        #: Code -> number of the first step with this fault.
        self.faults: dict[str, int] = {}

    def order(self, threads: Sequence[int], earlier: set[int] | None = None) -> None:
        """Order accesses before the next ones of threads; by default, those that precede one of these threads."""
        united = set().union(*(self.preceding[thread] for thread in threads)) if earlier is None else earlier
        for thread in threads:
            self.preceding[thread] = united

    def access(self, number: int, kind: str, pairs: list[tuple[int, int]]) -> None:
        """Access words, as pairs of a thread and a word, in a step of a number."""
        shared = self.space == "shared"
        now = [(place, *pair) for place, pair in enumerate(pairs, self.count)]
        self.count += len(now)
        if kind == "store":  # threads of one store race with each other, too
            for place, thread, word in now:
                self.accesses[word].append((place, thread, kind))
        for _, thread, word in now:
            for place, earlier_thread, earlier_kind in self.accesses[word]:
                apart = shared and earlier_thread // THREADS != thread // THREADS
                is_ordered = place in self.preceding[thread] or {kind, earlier_kind} in ({"load"}, {"atomic"})
                if earlier_thread != thread and not (apart or is_ordered):
                    self.faults.setdefault(f"{self.space}-race", number)
            if shared and kind != "store" and (thread // THREADS, word) not in self.written:
                self.faults.setdefault("unwritten-read", number)
        for place, thread, word in now:
            self.preceding[thread] = self.preceding[thread] | {place}
            if kind == "store":
                self.written.add((thread // THREADS, word))
            else:
                self.accesses[word].append((place, thread, kind))


def find_first_faults(program: list[Step], blocks: int, space: str) -> dict[str, int]:
    """Return by code the number of the first step that races, and of the first that reads unwritten shared memory."""
    model, shared = Model(blocks, space), space == "shared"
    for number, step in enumerate(program):
        kind, threads = step.kind.replace("wide", "store"), step.list_threads(blocks)
        if kind in MASKS:
            groups: dict[tuple[int, int], list[int]] = defaultdict(list)
            for thread in threads:
                lane = thread % THREADS % LANES
                groups[thread - lane, MASKS[kind][1](lane)].append(thread)
            for group in groups.values():
                model.order(group)
        elif kind == "block" or (not shared and kind in ("atomic", "acquire")):
            for block in range(blocks) if kind == "block" else {thread // THREADS for thread in threads}:
                members = range(block * THREADS, (block + 1) * THREADS)
                model.order(members, None if shared else set(range(model.count)))
        else:
            model.access(number, kind, [(t, word) for t in threads for word in step.list_words(t, shared=shared)])
    return model.faults


def run_program(program: list[Step], blocks: int, space: str, before: str) -> dict[str, int]:
    """Count a program after other code; return the first step of each code of its findings."""
    number, locate = "%r3", "mad.wide.u32 %rd2, %r6, 4, %rd1;"
    if space == "shared":
        number, locate = "%r0", "mad.lo.u32 %r6, %r6, 4, %r7;"
    lines = []
    for step in program:
        kind, first, stop, factor, shift, only = step
        thread, least = ("%r0", first) if only is None else ("%r3", first + only * THREADS)
        guard = f"sub.u32 %r4, {thread}, {least}; setp.lt.u32 %p1, %r4, {stop - first}; " if step.guard else ""
        if kind == "block":
            lines.append("bar.sync 0;")
        elif kind in MASKS:
            lines.append(f"{guard}{MASKS[kind][0]} {step.guard}bar.warp.sync %r4;")
        else:
            place = f"mad.lo.u32 %r6, {number}, {factor}, {shift}; and.b32 %r6, %r6, {62 if kind == 'wide' else 63};"
            lines.append(f"{place} {locate} {guard}{step.guard}{ACCESSES[space][kind]}")
    start = f"ld.param.u64 %rd1, [p0]; mov.u32 %r7, s; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, {THREADS}, %r0; "
    start += f"and.b32 %r8, %r0, 31; {before}"
    text = module("\n".join([start, *lines]), 1, SHARED.replace("256", "512"))
    policies: dict[str, Any] = {"races": "strict", "distinct": space == "global"}
    counters = execute_snippet(text, [np.zeros(512, np.uint32)], threads=THREADS, blocks=blocks, **policies)
    faults: dict[str, int] = {}
    for finding in counters.findings:
        number_of_step = finding.source.ptx_line - text.splitlines().index(start) - 2
        faults[finding.code] = min(number_of_step, faults.get(finding.code, len(lines)))
    return faults


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_first_faults_as_in_lists_of_accesses(space: str, blocks: int) -> None:
    rng, clean = np.random.default_rng(7), 0
    for turn in range(50):
        program = draw_program(rng, space, blocks)
        before = APART if blocks > 1 and turn % 2 else ""
        faults = run_program(program, blocks, space, before)
        assert faults == find_first_faults(program, blocks, space), program
        clean += not faults
    assert 5 < clean < 45, "programs with and without faults are drawn"


#: Waits of two paths of a warp after a store, and findings. Lanes 0 to 7 take the first path; they then load the word
#: of lane 31, which takes the second.
PATHS = {
    "a mask at two places": ("bar.warp.sync -1;", "bar.warp.sync -1;", []),
    "two masks": ("bar.warp.sync -1;", "bar.warp.sync 0x7fffffff;", ["divergent-barrier", "mask-without-lane"]),
    "a barrier of the block": ("bar.warp.sync -1;", "bar.sync 0;", ["divergent-barrier"]),
    "lanes that left": ("bar.warp.sync -1;", "ret;", []),
    "lanes that leave later": ("bar.warp.sync -1;", "bar.warp.sync 0xffffff00; ret;", []),
    "elect.sync": ("elect.sync %r5|%p2, -1;", "elect.sync %r5|%p2, -1;", []),
    "elect.sync and a barrier": ("elect.sync %r5|%p2, -1;", "bar.sync 0;", ["divergent-barrier"]),
    "elect.sync and bar.warp.sync": ("elect.sync %r5|%p2, -1;", "bar.warp.sync -1;", ["divergent-barrier"]),
}


@pytest.mark.parametrize(("first_code", "second_code", "expected"), PATHS.values(), ids=PATHS)
def test_barrier_waits_for_lanes_of_its_mask(first_code: str, second_code: str, expected: list[str]) -> None:
    """Lanes 0 to 7 branch to ``ONE``; after the first code, they read the word of lane 31, at byte 124."""
    text = module(
        f"""{PLACES} setp.lt.u32 %p1, %r0, 8; @%p1 bra ONE;
        st.shared.u32 [%r1], %r0; {second_code} bra END;
        ONE: st.shared.u32 [%r1], %r0; {first_code} ld.shared.u32 %r5, [%r7+124]; st.global.u32 [%rd1], %r5; END:""",
        1, SHARED,
    )  # fmt: skip
    out = np.zeros(64, np.uint32)
    counters = execute_snippet(text, [out])
    codes = [finding.code for finding in counters.findings if finding.code != "shared-race"]
    assert sorted(codes) == expected
    assert out[:8].tolist() == [31] * 8, "they waited for the store of lane 31"


@pytest.mark.parametrize(("wait", "codes"), [("bar.warp.sync -1;", []), ("elect.sync %r5|%p2, -1;", ["shared-race"])])
def test_elect_orders_no_memory(wait: str, codes: list[str]) -> None:
    text = module(f"{PLACES} st.shared.u32 [%r1], %r0; {wait} ld.shared.u32 %r5, [%r7+{31 * 4}];", 1, SHARED)
    counters = execute_snippet(text, [np.zeros(64, np.uint32)], threads=32, races="strict")
    assert [finding.code for finding in counters.findings] == codes


#: Instructions with a mask operand, %r4.
MASKED = [
    "bar.warp.sync %r4;", "shfl.sync.idx.b32 %r5, %r0, 9, 31, %r4;", "vote.sync.any.pred %p2, %p1, %r4;",
    "vote.sync.ballot.b32 %r5, %p1, %r4;", "match.any.sync.b32 %r5, %r0, %r4;", "redux.sync.add.u32 %r5, %r0, %r4;",
    "elect.sync %r5|%p2, %r4;", "@%p1 bar.warp.sync %r4;",
]  # fmt: skip


@pytest.mark.parametrize("instruction", MASKED)
@pytest.mark.parametrize(("mask", "missing_lanes"), [("-1", 0), ("0x3fffffff", 2), ("0x7fffffff", 1)])
def test_thread_outside_its_mask_is_a_finding(instruction: str, mask: str, missing_lanes: int) -> None:
    """The masks lack no lane, lanes 30 and 31, and lane 31. ``%p1`` is true from lane 4 on, so for these lanes."""
    text, blocks = module(f"mov.u32 %r4, {mask}; setp.gt.u32 %p1, %r0, 3; {instruction}", 1), 2
    counters = execute_snippet(text, [np.zeros(1)], blocks=blocks)
    findings = [(finding.code, finding.times) for finding in counters.findings]
    assert findings == ([("mask-without-lane", blocks * missing_lanes)] if missing_lanes else [])


def test_register_of_a_barrier_stays_live() -> None:
    """The last barrier reads its number from %r4, which is written before other barriers: the launch has no error."""
    words_after("""
        setp.lt.u32 %p1, %r0, 32; mov.u32 %r4, 1; selp.u32 %r5, 1, 2, %p1; bar.sync %r5, 32; bar.sync 0;
        bar.sync %r4, 64;
    """)


def test_barrier_of_too_many_threads_is_named_by_its_number() -> None:
    with pytest.raises(errors.DivergentBarrierError, match="it waits at barrier 5 for 96 threads"):
        words_after("mov.u32 %r4, 5; bar.sync %r4, 96;")


#: Wait of a warp between a store and a load, distance of their words (a power of two), and True if they race.
TILES = [
    ("__syncwarp(0xffu << (lane & 24))", 16, True),
    ("__syncwarp(0xffu << (lane & 24))", 4, False),
    ("cg::tiled_partition<8>(cg::this_thread_block()).sync()", 16, True),
    ("cg::tiled_partition<8>(cg::this_thread_block()).sync()", 4, False),
    ("__syncwarp(1u << lane)", 1, True),
    ("__syncwarp()", 16, False),
]


@pytest.mark.parametrize("blocks", [1, 16])
@pytest.mark.parametrize("number", range(len(TILES)))
def test_tiles_wait_for_their_own_lanes(number: int, blocks: int) -> None:
    """Of 16 blocks, those with odd numbers branch apart between the wait and the load."""
    kernels = [
        f"__global__ void k{n}(int* out) {{ __shared__ int s[64]; int t = threadIdx.x, lane = t & 31; "
        f"s[t] = t; {wait}; if (blockIdx.x & 1) out[64] = 1; out[t] = s[t ^ {far}]; }}"
        for n, (wait, far, _) in enumerate(TILES)
    ]
    source = "\n".join(["#include <cooperative_groups.h>", "namespace cg = cooperative_groups;", *kernels])
    arguments = [np.zeros(65, np.int32)]
    counters = ptxcount.count(compile_to_ptx(source), f"k{number}", blocks, 64, arguments, races="strict")
    *_, races = TILES[number]
    shared_races = [finding.times for finding in counters.findings if finding.code == "shared-race"]
    assert bool(shared_races) is races
