"""What a kernel leaves behind for its next instruction: registers, who touched what, what was written, steps."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from ptxcount import errors
from ptxcount.execute import STEP_LIMIT, run
from tests.ptxcount.snippets import module

Fault = type[errors.KernelFaultError]
#: %rd1 points to the thread's own element of the only argument, %r1 is its place in shared memory, %r2 that of the
#: neighbour in its warp, %r3 that of the thread in the next warp.
_PLACES = """
ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1;
mov.u32 %r7, s; mad.lo.u32 %r1, %r0, 4, %r7; xor.b32 %r2, %r1, 4; xor.b32 %r3, %r1, 128;
"""
_SHARED = ".shared .align 16 .b8 s[256];"


def _run(body: str, *, threads: int = 64, blocks: int = 1, size: int = 64, step_limit: int = STEP_LIMIT) -> Any:
    """What a kernel leaves in an array of 32-bit words that hold 0, 1, 2, ..."""
    out = np.arange(size, dtype=np.uint32)
    text = module(_PLACES + body, 1, _SHARED)
    run(
        text, "snippet", (blocks, 1, 1), (threads, 1, 1), [out], step_limit=step_limit, races="error", unwritten="error"
    )
    return out


def test_guarded_writes() -> None:
    """Where a write has a guard, the other threads keep what an earlier basic block gave them."""
    out = _run("""
        mov.u32 %r4, 7; setp.lt.u32 %p1, %r0, 20;
        bra NEXT;
        NEXT: @%p1 mov.u32 %r4, 5; st.global.u32 [%rd1], %r4;
    """)
    assert out.tolist() == [5] * 20 + [7] * 44


STORE, LOAD = "st.shared.u32 [{}], %r0;", "ld.shared.u32 %r5, [{}];"
#: What threads do to a word of shared memory, at %r6, and barriers of the block and of warps.
ACTIONS = {
    "load": LOAD, "store": STORE, "atomic": "atom.shared.add.u32 %r5, [{}], 1;",
    "wide": "st.shared.v2.u32 [{}], {{1, 2}};", "block": "bar.sync 0;", "warp": "bar.warp.sync -1;",
}  # fmt: skip
#: One of these, the first thread and the one behind the last, and which word: threads times a factor, and a number.
Action = tuple[str, int, int, int, int]


def _words(action: Action) -> list[tuple[int, int]]:
    """The threads of an action, each with a word that it touches."""
    kind, first, stop, factor, shift = action
    words = {"wide": 2, "block": 0, "warp": 0}.get(kind, 1)
    return [(t, ((t * factor + shift) % 64) * 2 + k) for t in range(first, stop) for k in range(words)]


def _wrong(program: list[Action]) -> dict[str, int]:
    """The first action that races, and the first that reads what nobody wrote, by lists of all accesses."""
    found: dict[str, int] = {}
    touched: list[tuple[int, int, str, int]] = []
    written: set[int] = set()
    epochs = [0, 0]
    for number, action in enumerate(program):
        kind = action[0].replace("wide", "store")
        touched = [] if kind == "block" else touched
        for warp in range(action[1] // 32, action[2] // 32) if kind == "warp" else ():
            epochs[warp] += 1
        now = [(t, word, kind, epochs[t // 32]) for t, word in _words(action)]
        for t, word, *_ in now:
            for u, other, what, when in touched + now * (kind == "store"):
                ordered = t // 32 == u // 32 and when < epochs[t // 32]
                if (
                    (t, word) != (u, word)
                    and word == other
                    and {kind, what} not in ({"load"}, {"atomic"})
                    and not ordered
                ):
                    found.setdefault("shared-race", number)
            if kind != "store" and word not in written:
                found.setdefault("unwritten-read", number)
        touched += now
        written |= {word for _, word, what, _ in now if what == "store"}
    return found


@pytest.mark.parametrize("parted", [False, True])
def test_random_accesses(parted: bool) -> None:
    """Shared memory of a block, also of blocks that have parted ways before: races and what nobody wrote."""
    rng, clean = np.random.default_rng(5), 0
    apart = "mov.u32 %r6, %ctaid.x; setp.lt.u32 %p2, %r6, 1; @%p2 bra ON; st.shared.u32 [%r1], %r0; ON: bar.sync 0;"
    for turn in range(100):
        program: list[Action] = [("wide", 0, 64, 1, 0), ("block", 0, 64, 0, 0)] if turn % 4 else []
        for kind in rng.choice(["load", "load", "store", "atomic", "wide", "block", "warp"], 5).tolist():
            ends = [0, 32, 64] if kind == "warp" else [0, 1, 7, 32, 33, 64]
            first, stop = sorted(rng.choice(ends, 2, replace=False).tolist())
            program.append((kind, first, stop, int(rng.choice([0, 1, 1, 1, 3])), int(rng.choice([0, 0, 1, 32]))))
        lines = [
            f"mad.lo.u32 %r6, %r0, {factor}, {shift}; and.b32 %r6, %r6, 63; mad.lo.u32 %r6, %r6, 8, %r7; "
            f"sub.u32 %r4, %r0, {first}; setp.lt.u32 %p1, %r4, {stop - first}; "
            f"{'@%p1 ' * (kind != 'block')}{ACTIONS[kind].format('%r6')}"
            for kind, first, stop, factor, shift in program
        ]
        text = module("\n".join([_PLACES + apart * parted, *lines]), 1, _SHARED.replace("256", "512"))
        given = [np.zeros(64, np.uint32)]
        counters = run(text, "snippet", (1 + parted, 1, 1), (64, 1, 1), [*given], races="strict")
        found: dict[str, int] = {}
        for each in counters.findings:
            found.setdefault(each.code, each.source.ptx_line - text.splitlines().index(lines[0]) - 1)
        assert found == _wrong(program), program
        clean += not found
    assert 15 < clean < 85


@pytest.mark.parametrize("space", ["shared", "global"])
def test_generic_addresses_from_data(space: str) -> None:
    """An address that was read, and so is no sum of a block's and a thread's part, is converted there and back."""
    base = "cvt.u64.u32 %rd3, %r7;" if space == "shared" else "ld.param.u64 %rd3, [p0];"
    within = "and.b32 %r4, %r4, 63;" if space == "shared" else ""
    out = _run(f"""
        mov.u32 %r6, %ctaid.x; mad.wide.u32 %rd1, %r6, 256, %rd1;
        ld.global.u32 %r4, [%rd1]; xor.b32 %r4, %r4, 5; {within} bar.sync 0; {base} mad.wide.u32 %rd2, %r4, 4, %rd3;
        cvta.{space}.u64 %rd4, %rd2; st.u32 [%rd4], %r0; bar.sync 0;
        cvta.to.{space}.u64 %rd5, %rd4; ld.{space}.u32 %r5, [%rd5]; add.u32 %r5, %r5, 100; bar.sync 0;
        st.global.u32 [%rd1], %r5;
    """, blocks=2, size=128)  # fmt: skip
    assert out.tolist() == [100 + t for t in range(64)] * 2


@pytest.mark.parametrize(("step", "first", "thread"), [(4, 1, 0), (2, 0, 1)])
def test_misaligned(step: int, first: int, thread: int) -> None:
    """Every thread by the same byte, or every other one, in several blocks."""
    body = f"""
        ld.param.u64 %rd2, [p0]; mov.u32 %r6, %ctaid.x; mad.wide.u32 %rd2, %r6, 128, %rd2;
        mad.lo.u32 %r4, %r0, {step}, {first}; cvt.u64.u32 %rd3, %r4; add.u64 %rd2, %rd2, %rd3;
        ld.global.u32 %r5, [%rd2];
    """
    with pytest.raises(errors.MisalignedError, match="is not a multiple of 4 bytes") as caught:
        _run(body, threads=16, blocks=2)
    assert (caught.value.block, caught.value.thread) == ((0, 0, 0), (thread, 0, 0))


@pytest.mark.parametrize("first", [0, 1])
def test_barrier_of_one_block(first: int) -> None:
    """It hides no race of another block."""
    body = f"""
        {STORE.format("%r1")} mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, {first}; ld.param.u64 %rd9, [p0];
        @%p1 bra WAITS;
        POLL: ld.volatile.global.u32 %r5, [%rd9]; setp.ne.u32 %p2, %r5, 7; @%p2 bra POLL; {LOAD.format("%r2")} bra END;
        WAITS: bar.sync 0; st.volatile.global.u32 [%rd9], 7; END:
    """
    with pytest.raises(errors.SharedRaceError) as caught:
        _run(body, blocks=2)
    assert caught.value.block == (1 - first, 0, 0)


#: What threads do to a word of global memory, at %rd2, and what orders a block behind all that was done before.
GLOBAL = {
    "load": "ld.global.u32 %r5, [%rd2];", "store": "st.global.u32 [%rd2], %r3;",
    "wide": "st.global.v2.u32 [%rd2], {1, 2};", "atomic": "atom.global.add.u32 %r5, [%rd2+1024], 1;",
    "acquire": "ld.acquire.gpu.global.u32 %r5, [%rd2+1024];", "block": "bar.sync 0;",
}  # fmt: skip


def _meeting(program: list[Action]) -> int | None:
    """The first action that races in global memory, by lists of all accesses, in blocks of four threads."""
    touched: list[tuple[int, int, str]] = []
    behind = [0] * 4
    for number, action in enumerate(program):
        kind = action[0].replace("wide", "store")
        if kind in ("block", "atomic", "acquire"):
            for t in range(16) if kind == "block" else range(*action[1:3]):
                behind[t // 4] = len(touched)
            continue
        now = [(t, word, kind) for t, word in _words(action)]
        for t, word, _ in now:
            for u, other, what in touched[behind[t // 4] :] + now * (kind == "store"):
                if u != t and word == other and "store" in (kind, what):
                    return number
        touched += now
    return None


def test_random_global_accesses() -> None:
    """Threads of four blocks meet in global memory, with nothing between that orders them."""
    rng, clean = np.random.default_rng(5), 0
    for _ in range(100):
        program: list[Action] = []
        for kind in rng.choice([*GLOBAL, "load"], 6).tolist():
            first, stop = sorted(rng.choice([0, 1, 4, 6, 8, 16], 2, replace=False).tolist())
            program.append((kind, first, stop, int(rng.choice([0, 1, 1, 1, 3])), int(rng.choice([0, 0, 0, 1, 4]))))
        lines = [
            f"mad.lo.u32 %r6, %r3, {factor}, {shift}; and.b32 %r6, %r6, 63; mad.wide.u32 %rd2, %r6, 8, %rd1; "
            f"sub.u32 %r4, %r3, {first}; setp.lt.u32 %p1, %r4, {stop - first}; "
            f"{'@%p1 ' * (kind != 'block')}{GLOBAL[kind]}"
            for kind, first, stop, factor, shift in program
        ]
        start = "ld.param.u64 %rd1, [p0]; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 4, %r0;"
        text = module("\n".join([start, *lines]), 1)
        given: list[Any] = [np.zeros(512, np.uint32)]
        counters = run(text, "snippet", (4, 1, 1), (4, 1, 1), given, races="strict", distinct=True)
        found = [each.source.ptx_line - text.splitlines().index(lines[0]) - 1 for each in counters.findings]
        assert min(found, default=None) == _meeting(program), program
        clean += not found
    assert 15 < clean < 85


@pytest.mark.parametrize(("value", "races"), [(5, False), (6, True)])
def test_global_store_of_what_is_there(value: int, races: bool) -> None:
    """It races with no load of another thread, unless races are strict."""
    body = f"""
        ld.param.u64 %rd1, [p0]; ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r0, 3; @%p1 st.global.u32 [%rd1], {value};
    """
    for how in ("report", "strict"):
        given: list[Any] = [np.full(4, 5, np.uint32)]
        counters = run(module(body, 1), "snippet", (1, 1, 1), (64, 1, 1), given, races=how, distinct=True)
        assert bool(counters.findings) == (races or how == "strict")


def test_race_beside_reserved_memory() -> None:
    """A thread that is in the memory of a library hides no race of others."""
    place = "mov.u32 %r4, %reserved_smem_offset_1; setp.eq.u32 %p1, %r0, 0; selp.b32 %r5, %r4, %r7, %p1;"
    with pytest.raises(errors.SharedRaceError):
        _run(f"{place} st.shared.u32 [%r5], %r0;")


@pytest.mark.parametrize("first", [0, 300])
def test_the_other_of_a_race(first: int) -> None:
    """Both threads are named, by their numbers in a block of any size."""
    body = f"sub.u32 %r5, %r0, {first}; setp.lt.u32 %p1, %r5, 2; @%p1 st.shared.u32 [%r7], %r5;"
    with pytest.raises(errors.SharedRaceError, match=f"also touched by thread number {first + 1} of") as caught:
        _run(body, threads=512, size=512)
    assert caught.value.thread == (first, 0, 0)


#: What threads do with one word of shared memory, %r7, that holds 5 before; and whether that is a race.
SAME = [
    ("", "st.shared.u32 [%r7], 1;", False),  # all threads the same
    ("", "st.shared.u32 [%r7], %r0;", True),
    ("", "st.shared.u32 [%r7], %r6;", False),  # the same in each block
    ("setp.eq.u32 %p1, %r0, 3;", "@%p1 st.shared.u32 [%r7], 1; st.shared.u32 [%r7], 1;", False),
    ("setp.eq.u32 %p1, %r0, 3;", "@%p1 st.shared.u32 [%r7], 1; st.shared.u32 [%r7], 2;", True),
    ("setp.eq.u32 %p1, %r0, 3;", "ld.shared.u32 %r5, [%r7]; @%p1 st.shared.u32 [%r7], 5;", False),  # it is there
    ("setp.eq.u32 %p1, %r0, 3;", "ld.shared.u32 %r5, [%r7]; @%p1 st.shared.u32 [%r7], 6;", True),
    ("setp.eq.u32 %p1, %r0, 3;", "atom.shared.add.u32 %r5, [%r7], 0; @%p1 st.shared.u32 [%r7], 5;", True),
    ("", "st.shared.v2.u32 [%r7], {1, %r6};", False),
    ("", "st.shared.v2.u32 [%r7], {1, %r0};", True),
    ("shr.u32 %r4, %r0, 5;", "st.shared.u32 [%r7], %r4;", True),  # the same within a warp only
]


@pytest.mark.parametrize("parted", [False, True])
@pytest.mark.parametrize(("before", "stores", "races"), SAME)
def test_stores_of_the_same(before: str, stores: str, races: bool, parted: bool) -> None:
    """A store that changes nothing for anybody is no race, also in blocks that have parted ways before."""
    apart = "setp.lt.u32 %p2, %r6, 1; @%p2 bra ON; st.shared.u32 [%r1], %r0; ON: bar.sync 0;" if parted else ""
    body = f"mov.u32 %r6, %ctaid.x; {apart} st.shared.v2.u32 [%r7], {{5, 5}}; bar.sync 0; {before} {stores}"
    if races:
        with pytest.raises(errors.SharedRaceError):
            _run(body, blocks=2)
    else:
        _run(body, blocks=2)


@pytest.mark.parametrize("races", ["report", "off"])
def test_races_reported(races: str) -> None:
    """A race that is reported is a finding beside the counts, once a line; the kernel goes on."""
    out = np.zeros(64, np.uint32)
    text = module(
        _PLACES + "st.shared.u32 [%r7], %r0; ld.shared.u32 %r5, [%r7]; st.global.u32 [%rd1], %r5;", 1, _SHARED
    )
    counters = run(text, "snippet", (3, 1, 1), (64, 1, 1), [out], races=races)
    assert out.tolist() == [63] * 64
    assert counters.totals()["shared_store_requests"] == 6
    said = [(each.code, each.source.ptx_line, each.message) for each in counters.findings]
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "st.shared" in line)
    race = "race in shared memory by block (0, 0, 0), thread (0, 0, 0):"
    assert [(code, at) for code, at, _ in said] == [("shared-race", line)] * (races == "report")
    assert all(message.startswith(race) for _, _, message in said)


def test_races_must_be_known() -> None:
    """What becomes of them, and of reads of what nobody wrote, is one of some words."""
    for word, known in (("races", "report, strict, error, off"), ("unwritten", "report, error, off")):
        policy: dict[str, Any] = {word: "never"}
        with pytest.raises(errors.LaunchError, match=f"{word} 'never': one of {known} is allowed"):
            run(module("", 1), "snippet", (1, 1, 1), (32, 1, 1), [np.zeros(1)], **policy)


@pytest.mark.parametrize("space", ["global", "shared", "local", "const"])
def test_spaces(space: str) -> None:
    """``isspacep``: a generic address lies in the space that it was made from, and in no other."""
    for other in ("global", "shared", "local", "const"):
        found = _run(f"""
            {".local .align 4 .b8 mine[4]; mov.u64 %rd3, mine;" if other == "local" else "cvt.u64.u32 %rd3, %r7;"}
            {"ld.param.u64 %rd3, [p0];" if other == "global" else ""}
            cvta.{other}.u64 %rd4, %rd3; isspacep.{space} %p1, %rd4; selp.u32 %r5, 1, 0, %p1;
            st.global.u32 [%rd1], %r5;
        """)
        assert set(found.tolist()) == {int(space == other)}


@pytest.mark.parametrize("writers", ["lt", "ge"])
def test_written_by_other_blocks(writers: str) -> None:
    """Blocks that part ways have a memory each: what half of them writes is not written in the others."""
    body = f"""
        mov.u32 %r4, %ctaid.x; setp.{writers}.u32 %p1, %r4, 16;
        @!%p1 bra READ;
        st.shared.u32 [%r1], 1;
        READ: ld.shared.u32 %r5, [%r1];
    """
    with pytest.raises(errors.UninitializedReadError) as caught:
        _run(body, blocks=32)
    assert caught.value.block == (16 if writers == "lt" else 0, 0, 0)


#: Operation, operand, and what it makes of 0, 1, 2, ... where threads i and i + 32 name word i.
REDUCTIONS = [
    ("add.u32", "3", lambda i: i + 6), ("min.s32", "-1", lambda i: 2**32 - 1),
    ("max.u32", "9", lambda i: max(i, 9)), ("and.b32", "5", lambda i: i & 5), ("or.b32", "5", lambda i: i | 5),
    ("xor.b32", "%r0", lambda i: i ^ i ^ (i + 32)),
    ("inc.u32", "4", lambda i: 0 if i == 3 else 1 if i >= 4 else i + 2),
    ("dec.u32", "4", lambda i: 3 if i == 0 or i > 4 else 4 if i == 1 else i - 2),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "operand", "expected"), REDUCTIONS, ids=[row[0] for row in REDUCTIONS])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_reductions(space: str, operation: str, operand: str, expected: Any) -> None:
    """``red``, which has no result: in global memory, and in shared memory as its smallest access."""
    place = f"and.b32 %r4, %r0, 31; cvt.u64.u32 %rd2, %r4; shl.b64 %rd2, %rd2, {2 if space == 'global' else 3};"
    if space == "global":
        body = f"ld.param.u64 %rd1, [p0]; add.u64 %rd1, %rd1, %rd2; red.global.{operation} [%rd1], {operand};"
    else:
        body = f"""
            cvt.u32.u64 %r5, %rd2; add.u32 %r5, %r5, %r7; cvt.u64.u32 %rd3, %r4;
            setp.lt.u32 %p1, %r0, 32; @%p1 st.shared.u64 [%r5], %rd3; bar.sync 0;
            red.shared.{operation} [%r5], {operand}; bar.sync 0;
            ld.shared.u64 %rd4, [%r5]; @%p1 st.global.u32 [%rd1], %rd4;
        """
    assert _run(place + body, size=32 if space == "global" else 64)[:32].tolist() == [expected(i) for i in range(32)]


def test_reduction_is_the_smallest_access() -> None:
    """What was written is known for units of its size: words between wide ones were not."""
    body = "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u64 [%r7], 1; bar.sync 0; red.shared.add.u32 [%r1], 1;"
    with pytest.raises(errors.UninitializedReadError) as caught:
        _run(body)
    assert caught.value.thread == (2, 0, 0)


@pytest.mark.parametrize("guard", ["", "setp.lt.u32 %p1, %r0, 3; @%p1 "])
@pytest.mark.parametrize("access", ["ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];",
                                    "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};"])  # fmt: skip
def test_vector_over_a_ragged_end(access: str, guard: str) -> None:
    """Of two vectors and a half the third is out of bounds, though it begins within the array."""
    body = f"ld.param.u64 %rd2, [p0]; mad.wide.u32 %rd2, %r0, 16, %rd2;\n{guard}{access}"
    assert _run(body, threads=2, size=10).size
    _names(
        errors.OutOfBoundsError,
        body,
        access,
        "16 bytes at 0x.*, which is byte 32 of argument 0 of 40 bytes",
        (2, 0, 0),
        10,
    )


@pytest.mark.parametrize(("access", "what"), [
    ("ld.param.v2.u64 {%rd2, %rd3}, [p0];", "16 bytes .* byte 0 of p0 of 8 bytes"),
    ("ld.param.u32 %r4, [p0+8];", "4 bytes .* byte 8 of p0 of 8 bytes"),
    ("ld.param.u64 %rd2, [p0+4];", "8 bytes .* byte 4 of p0 of 8 bytes"),
    ("ld.param.u8 %r4, [p0-1];", "1 bytes before p0 of 8 bytes"),
])  # fmt: skip
def test_parameter_over_its_end(access: str, what: str) -> None:
    """What lies behind a parameter is as out of bounds as what lies behind an array."""
    guard = "setp.ge.u32 %p1, %r0, 5; "
    _names(errors.OutOfBoundsError, f"{guard}@%p1 {access}", access, what, (5, 0, 0), 64)


def _names(error: Fault, body: str, access: str, what: str, thread: tuple[int, int, int], size: int) -> None:
    """A fault names the line of the access and the first thread that made it."""
    with pytest.raises(error, match=what) as caught:
        _run(body, size=size)
    fault = caught.value
    assert access in module(_PLACES + body, 1, _SHARED).splitlines()[fault.source.ptx_line - 1]
    assert (fault.block, fault.thread) == ((0, 0, 0), thread)


#: Special registers by what they are for the thread x, y, z of block i, j, k, which is number t of its block.
SPECIAL: dict[str, Any] = {
    **{f"%tid.{axis}": lambda at, place=place: at["thread"][place] for place, axis in enumerate("xyz")},
    **{f"%ctaid.{axis}": lambda at, place=place: at["block"][place] for place, axis in enumerate("xyz")},
    **{f"%ntid.{axis}": lambda at, place=place: (5, 4, 3)[place] for place, axis in enumerate("xyz")},
    **{f"%nctaid.{axis}": lambda at, place=place: (2, 3, 2)[place] for place, axis in enumerate("xyz")},
    **{f"%cluster_ctaid.{axis}": lambda at, n=n: at["block"][n] % (1, 3, 2)[n] for n, axis in enumerate("xyz")},
    **{f"%clusterid.{axis}": lambda at, n=n: at["block"][n] // (1, 3, 2)[n] for n, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": lambda at, n=n: (2, 1, 1)[n] for n, axis in enumerate("xyz")},
    "%cluster_ctarank": lambda at: at["block"][1] + 3 * at["block"][2],
    "%cluster_nctarank": lambda at: 6,
    "%laneid": lambda at: at["t"] % 32,
    "%warpid": lambda at: at["t"] // 32,
    "%nwarpid": lambda at: 2,
    "WARP_SZ": lambda at: 32,
    "%lanemask_eq": lambda at: 1 << at["t"] % 32,
    "%lanemask_lt": lambda at: sum(1 << lane for lane in range(32) if lane < at["t"] % 32),
    "%lanemask_le": lambda at: sum(1 << lane for lane in range(32) if lane <= at["t"] % 32),
    "%lanemask_gt": lambda at: sum(1 << lane for lane in range(32) if lane > at["t"] % 32),
    "%lanemask_ge": lambda at: sum(1 << lane for lane in range(32) if lane >= at["t"] % 32),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_registers(name: str) -> None:
    """Each thread of a grid of blocks, in clusters, in three dimensions."""
    body = f"""
        mov.u32 %r1, %tid.y; mad.lo.u32 %r0, %r1, 5, %r0; mov.u32 %r1, %tid.z; mad.lo.u32 %r0, %r1, 20, %r0;
        mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 60, %r0; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r0, %r1, 120, %r0;
        mov.u32 %r1, %ctaid.z; mad.lo.u32 %r0, %r1, 360, %r0;
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; mov.u32 %r2, {name}; st.global.u32 [%rd1], %r2;
    """
    out = np.zeros(2 * 3 * 2 * 60, np.uint32)
    run(module(body, 1), "snippet", (2, 3, 2), (5, 4, 3), [out], cluster=(1, 3, 2))
    for index, found in enumerate(out.tolist()):
        number, t = divmod(index, 60)
        at = {"t": t, "thread": (t % 5, t // 5 % 4, t // 20), "block": (number % 2, number // 2 % 3, number // 6)}
        assert found == SPECIAL[name](at), at


@pytest.mark.parametrize("align", [1, 8, 16, 64])
def test_stack(align: int) -> None:
    """Memory of any size is aligned as asked, and behind what there is."""
    body = f"""
        ld.param.u64 %rd1, [p0]; alloca.u64 %rd2, 5; alloca.u64 %rd3, 8, {align}; alloca.u64 %rd4, 1;
        sub.u64 %rd3, %rd3, %rd2; sub.u64 %rd4, %rd4, %rd2; st.global.v2.u64 [%rd1], {{%rd3, %rd4}};
    """
    out = np.zeros(2, np.int64)
    run(module(body, 1), "snippet", (1, 1, 1), (1, 1, 1), [out])
    start = -(-5 // align) * align
    assert out.tolist() == [start, -(-(start + 8) // 8) * 8]


@pytest.mark.parametrize("window", [5, 9, 127, 128, 255])
def test_address_of_no_space(window: int) -> None:
    """A generic address beyond all state spaces is out of bounds."""
    body = f"mov.u64 %rd1, {window << 56 | 64:#x}; ld.u32 %r1, [%rd1];"
    with pytest.raises(errors.OutOfBoundsError):
        run(module(body, 1), "snippet", (1, 1, 1), (32, 1, 1), [np.zeros(64, np.uint32)])


@pytest.mark.parametrize(("space", "most", "what"), [
    ("shared", 232448, "232449 bytes of shared memory a block; from 0 to 232448 are allowed"),
    ("local", 524288, "524289 bytes of local memory a thread; 524288 are allowed"),
])  # fmt: skip
def test_memory_of_a_block(space: str, most: int, what: str) -> None:
    """As much as is allowed, and a byte more."""
    for size in (most, most + 1):
        text = module(f"mov.u32 %r1, big; st.{space}.u8 [%r1+{size - 1}], 1;", 0, f".{space} .b8 big[{size}];")
        with nullcontext() if size == most else pytest.raises(errors.LaunchError, match=what):
            run(text, "snippet", (1, 1, 1), (1, 1, 1), [])


@pytest.mark.parametrize("access", ["ld.{}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%r8];",
                                    "st.{}.v4.u32 [%r8], {{%r1, %r2, %r3, %r4}};"])  # fmt: skip
@pytest.mark.parametrize(("space", "place", "error", "what"), [
    ("shared", 32, errors.OutOfBoundsError, "16 bytes at 32 of 40 bytes of shared memory"),
    ("local", 32, errors.OutOfBoundsError, "16 bytes at 32 of 40 bytes of local memory"),
    ("shared", 8, errors.MisalignedError, "shared address 8 is not a multiple of 16 bytes"),
    ("local", 8, errors.MisalignedError, "16 bytes at 8 of 40 bytes of local memory"),
])  # fmt: skip
def test_vector_of_a_block(space: str, place: int, error: Fault, what: str, access: str) -> None:
    """A vector that begins within shared or local memory ends there as well, and is aligned as a whole."""
    guarded = f"setp.eq.u32 %p1, %r0, 3; @%p1 {access.format(space)}"
    text = module(f"mov.u32 %r8, b; add.u32 %r8, %r8, {place};\n{guarded}", 0, f".{space} .align 16 .b8 b[40];")
    with pytest.raises(error, match=what) as caught:
        run(text, "snippet", (1, 1, 1), (32, 1, 1), [])
    assert caught.value.thread == (3, 0, 0)


@pytest.mark.parametrize("rounds", [1, 100])
def test_step_limit(rounds: int) -> None:
    """A kernel may take exactly the steps that are allowed: its instructions, and one for each basic block."""
    body = f"mov.u32 %r4, 0; AGAIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {rounds}; @%p1 bra AGAIN;"
    steps = (1 + 6 + 1 + 1) + rounds * (3 + 1) + (1 + 1)
    _run(body, step_limit=steps)
    with pytest.raises(errors.StepLimitExceededError, match=f"{steps - 1} instructions"):
        _run(body, step_limit=steps - 1)


def test_instructions() -> None:
    """Of each thread those that it executes, of a warp those of its last lane: 9 beside the loop, 3 in each turn."""
    body = "mov.u32 %r4, 0; AGAIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r0; @%p1 bra AGAIN;"
    text = module(_PLACES + body, 1, _SHARED)
    for blocks in (3, 40):
        counters = run(text, "snippet", (blocks, 1, 1), (41, 1, 1), [np.zeros(1, np.uint32)])
        assert counters.thread_instructions == blocks * sum(9 + 3 * max(t, 1) for t in range(41))
        assert counters.warp_instructions == blocks * sum(9 + 3 * last for last in (31, 40))
