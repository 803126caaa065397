"""Calls, partial barriers and partial votes: small PTX kernels against plain Python."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from ptxcount.util import errors
from tests.ptxcount.snippets import execute_snippet, module

_PLACE = "ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1;"
_STORE = "st.global.u32 [%rd1], %r5;"


def _run(body: str, functions: str = "", threads: int = 64, blocks: int = 2) -> npt.NDArray[np.uint32]:
    """Run a body; return %r5 of each thread number. %r0 is the number, and %p1 is set below 40."""
    body = f"{_PLACE} setp.lt.u32 %p1, %r0, 40; mov.u32 %r5, 9;\n{body}\n{_STORE}"
    out = np.zeros(threads, np.uint32)
    execute_snippet(module(body, 1, functions=functions), [out], threads=threads, blocks=blocks)
    return out


TWICE = (
    ".func (.param .b32 d) twice(.param .b32 a) {{ .reg .b32 %r<3>; .reg .pred %p1; ld.param.b32 %r1, [a]; {} ret; }}"
)
CALL = "{{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r0; {}call.uni (y), {}, (x); ld.param.b32 %r5, [y]; }}"
#: Code of a function, predicate of its call, and the result of each thread.
CALLS = [
    ("add.u32 %r2, %r1, %r1; st.param.b32 [d], %r2;", "", [2 * t for t in range(64)]),
    ("setp.gt.u32 %p1, %r1, 7; st.param.b32 [d], 1; @%p1 ret; st.param.b32 [d], 2;", "", [2] * 8 + [1] * 56),
    ("L: add.u32 %r1, %r1, 5; setp.lt.u32 %p1, %r1, 50; @%p1 bra L; st.param.b32 [d+0], %r1;", "",
     [t + 5 * max(1, math.ceil((50 - t) / 5)) for t in range(64)]),  # adds 5 once, and until the sum is 50 or more
    # without a call, the result is zero
    ("add.u32 %r2, %r1, 1; st.param.b32 [d], %r2;", "@%p1 ", [t + 1 if t < 40 else 0 for t in range(64)]),
    ("add.u32 %r2, %r1, 1; st.param.b32 [d], %r2;", "@!%p1 ", [t + 1 if t >= 40 else 0 for t in range(64)]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "guard", "expected"), CALLS)
def test_functions_have_their_own_registers(code: str, guard: str, expected: list[int]) -> None:
    """The kernel calls ``twice``. Another kernel calls ``outer`` two times, and ``outer`` calls ``twice``."""
    functions = TWICE.format(code)
    outer = ".func (.param .b32 d) outer(.param .b32 a) { .reg .b32 %r<9>; ld.param.b32 %r0, [a];"
    functions += outer + CALL.format("", "twice") + "st.param.b32 [d], %r5; ret; }"
    assert _run(CALL.format(guard, "twice"), functions).tolist() == expected
    calls = CALL.format("", "outer").replace("%r5", "%r6") + CALL.format(guard, "outer")
    assert _run(calls, functions).tolist() == expected


BEFORE = ".shared .align 4 .b8 s[256]; mov.u32 %r7, s; mad.lo.u32 %r1, %r0, 4, %r7;"
#: Code between a store of each thread to shared memory and its final store, and the final values.
BARRIERS = [
    ("bar.sync 1, 64; xor.b32 %r2, %r1, 128; ld.shared.u32 %r5, [%r2];", [(t ^ 32) for t in range(64)]),
    ("shr.u32 %r3, %r0, 5; bar.sync %r3, 32; xor.b32 %r2, %r1, 4; ld.shared.u32 %r5, [%r2];",
     [t ^ 1 for t in range(64)]),
    ("setp.lt.u32 %p2, %r0, 32; @%p2 bar.sync 3, 32; mov.u32 %r5, 5;", [5] * 64),  # one warp suffices
    ("setp.lt.u32 %p2, %r0, 32; @%p2 bar.arrive 3, 64; @!%p2 bar.sync 3, 64; mov.u32 %r5, 5;", [5] * 64),
    ("bar.red.popc.u32 %r5, 0, %p1;", [40] * 64),
    ("bar.red.popc.u32 %r5, 1, 64, !%p1;", [64 - 40] * 64),
    ("bar.red.and.pred %p2, 0, %p1; selp.u32 %r5, 1, 0, %p2;", [0] * 64),
    ("barrier.cta.red.or.aligned.pred %p2, 0, %p1; selp.u32 %r5, 1, 0, %p2;", [1] * 64),
    ("setp.lt.u32 %p2, %r0, 32; @%p2 bar.red.popc.u32 %r5, 2, 32, %p1;", [32] * 32 + [9] * 32),  # warp 1 keeps 9
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), BARRIERS)
def test_barriers_order_threads_and_reduce(code: str, expected: list[int]) -> None:
    assert _run(f"{BEFORE} st.shared.u32 [%r1], %r0; {code}").tolist() == expected


@pytest.mark.parametrize("code", ["@%p2 bar.sync 3, 64;", "@%p2 bar.arrive 3, 64; @!%p2 bar.sync 3, 96;"])
def test_incomplete_barrier_is_an_error(code: str) -> None:
    message = r"waits at barrier 3 for (64|96) threads, but some never arrive"
    with pytest.raises(errors.DivergentBarrierError, match=message):
        _run(f"setp.lt.u32 %p2, %r0, 32; {code}")


def test_partial_copy_needs_full_alignment() -> None:
    code = ".shared .align 16 .b8 s[16]; cp.async.cg.shared.global [s], [%rd1+4], 16, 4;"
    with pytest.raises(
        errors.MisalignedError, match=r"a copy of 16 bytes at 0x\w+4; the address must be a multiple of 16"
    ):
        _run(code, threads=1)


#: Bytes of a copy, operand for the source size, and function of the bytes that a thread reads.
COPIES = [
    (16, "", lambda t: 16), (8, "", lambda t: 8), (4, ", 4", lambda t: 4), (4, ", 0", lambda t: 0),
    (16, ", 7", lambda t: 7), (8, ", %r3", lambda t: t % 8), (16, ", %p1", lambda t: 0 if t < 40 else 16),
]  # fmt: skip


@pytest.mark.parametrize(("size", "source_size", "read"), COPIES)
def test_cp_async_counts_as_load_and_copy(size: int, source_size: str, read: Callable[[int], int]) -> None:
    """``%r3`` is the thread modulo 8, and ``%p1`` is true for threads 0 to 39: then a copy stores zeros."""
    words = range(0, size, 4)
    text = module(
        f".shared .align 16 .b8 s[1024]; mov.u32 %r7, s; mad.lo.u32 %r1, %r0, {size}, %r7; ld.param.u64 %rd1, [p0];"
        f"mad.wide.u32 %rd1, %r0, {size}, %rd1; and.b32 %r3, %r0, 7; setp.lt.u32 %p1, %r0, 40;"
        f"cp.async.c{'g' if size == 16 else 'a'}.shared.global.L2::128B [%r1], [%rd1], {size}{source_size};"
        f"cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; bar.sync 0;"
        f"ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd2, %r0, {size}, %rd2;"
        + "".join(f"ld.shared.u32 %r5, [%r1+{k}]; st.global.u32 [%rd2+{k}], %r5;" for k in words), 2
    )  # fmt: skip
    source = np.arange(64 * size - size + read(63), dtype=np.uint8)  # the last thread's bytes end the array
    padded, out = np.resize(source, (64, size)), np.zeros((64, size), np.uint8)
    counters = execute_snippet(text, [source, out], threads=64)
    counts = [read(thread) for thread in range(64)]
    assert (out == np.where(np.arange(size) < np.array(counts)[:, None], padded, 0)).all()
    loads = [a for a in counters.accesses if (a.space, a.kind) == ("global", "load")]
    requests = sum(any(counts[first : first + 32]) for first in (0, 32))
    sectors = len({thread * size // 32 for thread in range(64) if counts[thread]})
    expected = [(requests, sectors, sum(counts))] if requests else []
    assert [(a.requests, a.sectors, a.useful_bytes) for a in loads] == expected
    assert [(a.requests, a.bank_conflicts) for a in counters.accesses if a.kind == "copy"] == [(2, 0)]
    assert counters.totals()["shared_store_requests"] == 0  # a copy is no store
