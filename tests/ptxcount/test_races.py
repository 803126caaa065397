"""Races and unwritten reads: cases by hand; test_warp_order.py has random programs."""

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.util import errors
from tests.ptxcount.snippets import PLACES, SHARED, execute_snippet, module, words_after


@pytest.mark.parametrize("first", [0, 1])
def test_race_of_one_block_is_reported(first: int) -> None:
    """Block ``first`` has a barrier, then sets a flag. The other waits for the flag, and reads without a barrier."""
    body = f"""
        st.shared.u32 [%r1], %r0; mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, {first}; ld.param.u64 %rd9, [p0];
        @%p1 bra WAITS;
        POLL: ld.volatile.global.u32 %r5, [%rd9]; setp.ne.u32 %p2, %r5, 7; @%p2 bra POLL;
        ld.shared.u32 %r5, [%r2]; bra END;
        WAITS: bar.sync 0; st.volatile.global.u32 [%rd9], 7; END:
    """
    with pytest.raises(errors.SharedRaceError) as caught:
        words_after(body, blocks=2)
    assert caught.value.block == (1 - first, 0, 0)


def test_reserved_memory_hides_no_race() -> None:
    """Thread 0 stores to reserved memory. The others store different values to one word."""
    place = "mov.u32 %r4, %reserved_smem_offset_1; setp.eq.u32 %p1, %r0, 0; selp.b32 %r5, %r4, %r7, %p1;"
    with pytest.raises(errors.SharedRaceError):
        words_after(f"{place} st.shared.u32 [%r5], %r0;")


@pytest.mark.parametrize("first", [0, 300])
def test_race_names_both_threads(first: int) -> None:
    """Threads ``first`` and ``first + 1`` store 0 and 1 to one word."""
    body = f"sub.u32 %r5, %r0, {first}; setp.lt.u32 %p1, %r5, 2; @%p1 st.shared.u32 [%r7], %r5;"
    with pytest.raises(errors.SharedRaceError, match=rf" races with thread \({first + 1}, 0, 0\)") as caught:
        words_after(body, threads=512, size=512)
    assert caught.value.thread == (first, 0, 0)


#: Preparation, operations on the shared word at %r7, which holds 5, and True if they race.
SAME = [
    ("", "st.shared.u32 [%r7], 1;", False),  # equal in all threads
    ("", "st.shared.u32 [%r7], %r0;", True),
    ("", "st.shared.u32 [%r7], %r6;", False),  # equal in each block
    ("setp.eq.u32 %p1, %r0, 3;", "@%p1 st.shared.u32 [%r7], 1; st.shared.u32 [%r7], 1;", False),
    ("setp.eq.u32 %p1, %r0, 3;", "@%p1 st.shared.u32 [%r7], 1; st.shared.u32 [%r7], 2;", True),
    ("setp.eq.u32 %p1, %r0, 3;", "ld.shared.u32 %r5, [%r7]; @%p1 st.shared.u32 [%r7], 5;", False),  # the present value
    ("setp.eq.u32 %p1, %r0, 3;", "ld.shared.u32 %r5, [%r7]; @%p1 st.shared.u32 [%r7], 6;", True),
    ("setp.eq.u32 %p1, %r0, 3;", "atom.shared.add.u32 %r5, [%r7], 0; @%p1 st.shared.u32 [%r7], 5;", True),  # an atomic
    ("", "st.shared.v2.u32 [%r7], {1, %r6};", False),
    ("", "st.shared.v2.u32 [%r7], {1, %r0};", True),
    ("shr.u32 %r4, %r0, 5;", "st.shared.u32 [%r7], %r4;", True),  # equal within a warp
]


@pytest.mark.parametrize("parted", [False, True])
@pytest.mark.parametrize(("prelude", "stores", "races"), SAME)
def test_stores_race_unless_equal_or_without_change(prelude: str, stores: str, races: bool, parted: bool) -> None:
    """If ``parted``, the two blocks branch differently before."""
    apart = "setp.lt.u32 %p2, %r6, 1; @%p2 bra ON; st.shared.u32 [%r1], %r0; ON: bar.sync 0;" if parted else ""
    body = f"mov.u32 %r6, %ctaid.x; {apart} st.shared.v2.u32 [%r7], {{5, 5}}; bar.sync 0; {prelude} {stores}"
    with pytest.raises(errors.SharedRaceError) if races else nullcontext():
        words_after(body, blocks=2)


#: Instructions of the odd blocks after a load by all threads, and True if they race.
AFTER_LOAD = {
    "st.shared.u32 [%r2], 99;": True,
    "bar.sync 0; st.shared.u32 [%r2], 99;": False,
    "ld.shared.u32 %r5, [%r1]; bar.sync 0; st.shared.u32 [%r2], 99;": False,
    "bar.sync 0; ld.shared.u32 %r5, [%r1]; st.shared.u32 [%r2], 99;": True,
}


@pytest.mark.parametrize("blocks", [2, 32])  # 32 blocks split by the branch
@pytest.mark.parametrize(("code", "races"), AFTER_LOAD.items())
def test_stores_race_with_loads_before_a_branch(code: str, races: bool, blocks: int) -> None:
    branch = "mov.u32 %r4, %ctaid.x; and.b32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra END;"
    load = "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r5, [%r1];"
    with pytest.raises(errors.SharedRaceError) if races else nullcontext():
        words_after(f"{load} {branch} {code} END:", blocks=blocks)


_DATA, _READ = "st.shared.u32 [%r7], 42;", "ld.shared.u32 %r6, [%r7];"
_WAIT = "L: {}; setp.ne.u32 %p3, %r5, 1; @%p3 bra L;"
_RELEASE = "st.release.cta.shared.b32 [%r7+4], 1;"
_ACQUIRE = _WAIT.format("ld.acquire.cta.shared.b32 %r5, [%r7+4]")
_TEST = _WAIT.format("atom{}.shared.or.b32 %r5, [%r7+4], 0")
_ONE_LANE = f"setp.ne.u32 %p4, %r0, 32; @%p4 bra W; {_ACQUIRE} W:"
#: Code of thread 0 that writes a word and a flag behind it, code of warp 1, and True if they race. Both words are 0.
FLAGS = [
    (f"{_DATA} {_RELEASE}", f"{_ACQUIRE} {_READ}", False),
    (f"{_DATA} st.volatile.shared.u32 [%r7+4], 1;",
     f"{_WAIT.format('ld.volatile.shared.u32 %r5, [%r7+4]')} {_READ}", False),
    (f"{_DATA} membar.cta; atom.shared.exch.b32 %r5, [%r7+4], 1;", f"{_ACQUIRE} {_READ}", False),
    (f"{_DATA} {_RELEASE}", f"{_TEST.format('.acquire.cta')} {_READ}", False),
    (f"{_DATA} {_RELEASE}", f"{_TEST.format('')} fence.acq_rel.cta; {_READ}", False),
    (f"{_DATA} {_RELEASE}", f"{_TEST.format('')} {_READ}", True),
    (f"{_RELEASE} {_DATA}", f"{_ACQUIRE} {_READ}", True),
    (f"{_DATA} {_RELEASE}", f"ld.acquire.cta.shared.u32 %r5, [%r7+8]; {_READ}", True),  # another flag
    ("st.shared.u32 [%r7+4], 1;", _ACQUIRE, True),
    ("st.relaxed.cta.shared.u32 [%r7], 7;", "ld.relaxed.cta.shared.u32 %r6, [%r7];", False),
    ("st.relaxed.cta.shared.u32 [%r7], 7;", "st.volatile.shared.u32 [%r7], 8;", False),
    ("st.relaxed.cta.shared.u32 [%r7], 7;", _READ, True),
    ("atom.shared.add.u32 %r5, [%r7], 1;", "ld.relaxed.cta.shared.u32 %r6, [%r7];", False),
    ("atom.shared.add.u32 %r5, [%r7], 1;", f"atom.shared.add.u32 %r5, [%r7+8], 1; membar.cta; {_READ}", True),
    (f"{_DATA} {_RELEASE}", f"{_ONE_LANE} bar.warp.sync {{mask}}; {_READ}", False),
    (f"{_DATA} {_RELEASE}", f"{_ONE_LANE} {_READ}", True),
]  # fmt: skip


@pytest.mark.parametrize("mask", ["-1", "%r8"])
def test_flags_order_accesses(mask: str) -> None:
    """Each line of the kernel is a case: thread 0 runs the first code, and warp 1 the second. Races have the line."""
    lines = [
        "bar.sync 0; @!%p1 st.shared.v4.u32 [%r7], {0, 0, 0, 0}; bar.sync 0; @%p2 bra C; @%p1 bra E; "
        f"{first} bra E; C: {others.replace('{mask}', mask)} E:"
        for first, others, _ in FLAGS
    ]
    # each line has labels of its own
    lines = [re.sub(r"\b([LWCE])\b", rf"\g<1>{place}", line) for place, line in enumerate(lines)]
    start = "mov.u32 %r8, -1; setp.ne.u32 %p1, %r0, 0; shr.u32 %r4, %r0, 5; setp.eq.u32 %p2, %r4, 1;"
    text = module("\n".join([PLACES + start, *lines]), 1, SHARED)
    counters = execute_snippet(text, [np.zeros(64, np.uint32)], threads=64, blocks=2)
    first_line = text.splitlines().index(lines[0]) + 1
    racing = {finding.source.ptx_line - first_line for finding in counters.findings}
    assert racing == {place for place, (*_, races) in enumerate(FLAGS) if races}


_OWN, _NEXT, _ACROSS = "%r7", "%r6", "%r5"
#: Code after a volatile store to the own word, and True if it races; %r6 is the next lane's word, %r5 the next warp's.
VOLATILE = [
    (f"ld.volatile.shared.u32 %r3, [{_OWN}];", False), (f"ld.volatile.shared.u32 %r3, [{_NEXT}];", True),
    (f"st.volatile.shared.u32 [{_NEXT}], %r0;", True), (f"ld.volatile.shared.u32 %r3, [{_ACROSS}];", False),
    (f"bar.warp.sync -1; ld.volatile.shared.u32 %r3, [{_NEXT}];", False),
    (f"bar.warp.sync %r8; ld.volatile.shared.u32 %r3, [{_ACROSS}];", False),
    (f"bar.warp.sync %r4; ld.volatile.shared.u32 %r3, [{_NEXT}];", True),
    (f"ld.relaxed.cta.shared.u32 %r3, [{_NEXT}];", False),
    (f"again: ld.volatile.shared.u32 %r3, [{_NEXT}]; setp.eq.u32 %p1, %r3, 0; @%p1 bra again;", False),
]  # fmt: skip


@pytest.mark.parametrize(("code", "is_race"), VOLATILE)
@pytest.mark.parametrize("races", ["strict", "report"])
def test_unordered_volatile_accesses_race_if_strict(code: str, is_race: bool, races: str) -> None:
    """Mask ``%r8`` has all lanes, ``%r4`` the own one. Offset ^ 4 is the next lane's word, ^ 128 the next warp's."""
    body = f"""mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r7, %r1, %r2; xor.b32 %r2, %r2, 4; add.u32 %r6, %r1, %r2;
        xor.b32 %r2, %r2, 132; add.u32 %r5, %r1, %r2; mov.u32 %r8, -1; and.b32 %r4, %r0, 31; shl.b32 %r4, 1, %r4;
        st.volatile.shared.u32 [%r7], 1; {code}"""
    counters = execute_snippet(module(body, 0, SHARED), [], threads=64, races=races)
    expected = ["shared-race"] if is_race and races == "strict" else []
    assert [finding.code for finding in counters.findings] == expected


@pytest.mark.parametrize("races", ["report", "off"])
def test_kernel_continues_after_a_race(races: str) -> None:
    out = np.zeros(64, np.uint32)
    text = module(PLACES + "st.shared.u32 [%r7], %r0; ld.shared.u32 %r5, [%r7]; st.global.u32 [%rd1], %r5;", 1, SHARED)
    counters = execute_snippet(text, [out], threads=64, blocks=3, races=races)
    assert out.tolist() == [63] * 64, "the last thread's store is the last"
    assert counters.totals()["shared_store_requests"] == 3 * 2  # blocks, warps
    assert len(counters.findings) == (1 if races == "report" else 0)
    for finding in counters.findings:
        assert finding.code == "shared-race"
        assert "st.shared" in text.splitlines()[finding.source.ptx_line - 1]
        assert finding.message.startswith("race in shared memory by block (0, 0, 0), thread (0, 0, 0):")


#: Code after 64 threads have arrived at an mbarrier, and its findings; only thread 40 has %p2 set.
INVALIDATIONS = {
    "@%p2 mbarrier.inval.shared.b64 [b];": [],  # as the last thread of cuda::pipeline, by a counter
    "@%p2 mbarrier.inval.shared.b64 [b]; mbarrier.arrive.shared.b64 _, [b];": ["unwritten-read"],
    "@%p2 mbarrier.inval.shared.b64 [b]; @!%p2 st.shared.u64 [b], 0;": ["shared-race"],
    "@%p2 st.shared.u64 [b], 0;": ["shared-race"],
}


@pytest.mark.parametrize(("code", "codes"), INVALIDATIONS.items())
def test_invalidated_mbarrier_is_unwritten(code: str, codes: list[str]) -> None:
    text = module(
        ".shared .b64 b; setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r0, 40; @%p1 mbarrier.init.shared.b64 [b], 999;"
        f"bar.sync 0; mbarrier.arrive.shared.b64 _, [b]; {code}", 0
    )  # fmt: skip
    assert [finding.code for finding in execute_snippet(text, [], threads=64).findings] == codes


#: Code of one thread in a loop with a plain load from %rd1, and True if it changes the loaded word.
SCANS = {
    "atom.global.exch.b32 %r5, [%rd1], 7;": True, "st.volatile.global.u32 [%rd1], 7;": True,
    "atom.global.add.u32 %r5, [%rd1], 0;": False, "atom.global.exch.b32 %r5, [%rd1+4], 7;": False,
    "red.shared.add.u32 [s], 1;": False,
}  # fmt: skip


@pytest.mark.parametrize(("write", "is_race"), SCANS.items())
@pytest.mark.parametrize("ends_loop", [True, False])
def test_loop_ended_by_another_thread_is_a_race(write: str, is_race: bool, ends_loop: bool) -> None:
    """All threads load the word in a loop of at most four rounds, in which thread 5 writes."""
    text = module(
        f".shared .b32 s; ld.param.u64 %rd1, [p0]; st.shared.u32 [s], 0; mov.u32 %r1, 0;\n"
        f"L: ld.global.u32 %r2, [%rd1]; setp.ne.u32 %p1, %r2, 0; {'@%p1 bra D;' if ends_loop else ''}\n"
        f"setp.eq.u32 %p2, %r0, 5; @%p2 {write} add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra L; D:", 1
    )  # fmt: skip
    counters = execute_snippet(text, [np.zeros(2, np.int32)], distinct=True)
    messages = [finding.message for finding in counters.findings if finding.code == "global-race"]
    assert len(messages) == (1 if is_race and ends_loop else 0)
    assert all("another thread writes" in text and "counts depend on the order" in text for text in messages)


def test_unknown_policies_are_refused() -> None:
    for word, allowed in (("races", "report, strict, error, off"), ("unwritten", "report, error, off")):
        policy: dict[str, Any] = {word: "never"}
        with pytest.raises(errors.LaunchError, match=f"{word} is 'never'; allowed are {allowed}"):
            execute_snippet(module("", 1), [np.zeros(1)], **policy)


@pytest.mark.parametrize(("value", "races"), [(5, False), (6, True)])
def test_store_of_the_old_value_races_only_if_strict(value: int, races: bool) -> None:
    """All threads read a word, which is 5; thread 3 stores to it."""
    body = f"""
        ld.param.u64 %rd1, [p0]; ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r0, 3; @%p1 st.global.u32 [%rd1], {value};
    """
    for how in ("report", "strict"):
        arguments: list[Any] = [np.full(4, 5, np.uint32)]
        counters = execute_snippet(module(body, 1), arguments, threads=64, races=how, distinct=True)
        assert bool(counters.findings) == (races or how == "strict")


#: Lines 2 and 3 of a kernel, which race in global memory, what the earlier access does, and the end of the message.
#: Line 2 is empty if line 3 races alone.
LINES = [
    ("x[i] = i;\nx[64 + i] = x[63 - i];", "writes", r", at source\.cu:2 \(PTX line \d+\)$"),
    ("int v = x[i]; x[i] = v + i + 1;\nx[63 - i] = v + 7;", "writes", r", at source\.cu:2 \(PTX line \d+\)$"),
    ("x[64 + i] = x[i];\nx[63 - i] = i;", "reads", r", at source\.cu:2 \(PTX line \d+\)$"),
    ("\nx[i & 1] = i;", "writes", ""),
]


@pytest.mark.parametrize(("lines", "verb", "end"), LINES)
def test_global_race_names_both_lines(lines: str, verb: str, end: str) -> None:
    source = f"__global__ void k(int* x) {{ int i = threadIdx.x;\n{lines}\n}}\n"
    (finding,) = ptxcount.count(source, "k", 1, 64, [np.zeros(128, np.int32)]).findings
    assert (finding.code, finding.source.line) == ("global-race", 3)
    assert f"which another thread {verb} without synchronization" in finding.message
    assert re.search(end, finding.message)


@pytest.mark.parametrize("store", ["st.global.u32 [%rd2], %r0;", "st.global.v2.u32 [%rd2], {%r0, %r0};"])
@pytest.mark.parametrize(("place", "races"), [(15, True), (16, False)])
def test_first_stores_of_an_array_are_compared(place: int, races: bool, store: str) -> None:
    """In the loop's iteration ``place``, all threads store to the place of thread 0. Nothing reads the array."""
    body = f"""
        ld.param.u64 %rd1, [p0]; mov.u32 %r1, 0;
        L: setp.eq.u32 %p1, %r1, {place}; selp.u32 %r2, 0, %r0, %p1; mad.lo.u32 %r2, %r1, 32, %r2;
        mad.wide.u32 %rd2, %r2, 8, %rd1; {store} add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 20; @%p2 bra L;
    """
    counters = ptxcount.count(module(body, 1), None, 1, 32, [np.zeros(20 * 32 * 2, np.uint32)])
    assert [finding.code for finding in counters.findings] == ["global-race"] * races
