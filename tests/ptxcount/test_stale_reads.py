"""Stale reads: non-coherent loads of bytes that the launch wrote, in a table, and random programs against sets."""

import random
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.executable import load_executable
from ptxcount.machine.reached_names import ANYTHING
from tests.ptxcount.snippets import execute_snippet, module

_DECLARED = ".shared .align 16 .b8 s[512]; .reg .f32 %f<4>;"
#: %rd1 is the address of array 0, %rd2 the thread's word in it, %rd3 the next thread's word, %rd4 array 1;
#: %rd5 and %rd6 are a texture and a surface of array 0.
_PLACES = """ld.param.u64 %rd1, [p0]; ld.param.u64 %rd4, [p1]; ld.param.u64 %rd5, [p2]; ld.param.u64 %rd6, [p3];
mad.wide.u32 %rd2, %r0, 4, %rd1; xor.b32 %r2, %r0, 1; mad.wide.u32 %rd3, %r2, 4, %rd1; mov.u32 %r1, s;
setp.eq.u32 %p1, %r0, 40;"""
_STORE, _LOAD, _BARRIER = "st.global.u32 [%rd2], %r0;", "ld.global.nc.u32 %r3, [%rd3];", "bar.sync 0;"
_FETCH = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd5, {%r2}];"
#: Code of 64 threads with a barrier between both lines, and True if the second line has a stale read.
PATTERNS = [
    (_STORE, _LOAD, True),
    (_STORE, "ld.global.nc.u32 %r3, [%rd2];", True),  # the thread's own store
    ("st.global.u32 [%rd2], 0;", _LOAD, True),  # a store of the old value
    ("st.volatile.global.u32 [%rd2], %r0;", _LOAD, True),
    ("st.u32 [%rd2], %r0;", _LOAD, True),  # a generic address
    ("@%p1 st.global.u8 [%rd2+3], 1;", _LOAD, True),
    ("@%p1 st.global.u8 [%rd2+3], 1;", "@%p1 ld.global.nc.u32 %r3, [%rd3];", False),  # of the neighbour's word
    ("@%p1 st.global.u8 [%rd2+3], 1;", "ld.global.nc.u8 %r3, [%rd3+2];", False),  # of another byte of the word
    ("@%p1 st.global.u32 [%rd1+16], 1;", "@%p1 ld.global.nc.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1];", False),
    ("@%p1 st.global.u32 [%rd1+12], 1;", "@%p1 ld.global.nc.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1];", True),
    ("@%p1 st.global.v2.u64 [%rd1], {1, 1};", "@%p1 ld.global.nc.b16 %r3, [%rd1+14];", True),
    ("@%p1 st.global.v2.u64 [%rd1], {1, 1};", "@%p1 ld.global.nc.b16 %r3, [%rd1+16];", False),
    ("atom.global.add.u32 %r3, [%rd2], 1;", _LOAD, True),
    ("red.global.add.u32 [%rd2], 1;", _LOAD, True),
    ("atom.global.add.u32 %r3, [%rd2], 0;", _LOAD, False),
    ("atom.global.cas.b32 %r3, [%rd2], 5, 6;", _LOAD, False),  # it fails
    ("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", _LOAD, True),
    ("@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", "ld.global.nc.u32 %r3, [%rd3+256];", False),
    (_STORE, "ld.global.u32 %r3, [%rd3];", False),
    (_STORE, "ld.global.cg.u32 %r3, [%rd3];", False),
    (_STORE, "ld.volatile.global.u32 %r3, [%rd3];", False),
    (_STORE, "ld.global.nc.u32 %r3, [%rd4];", False),  # of another array
    (_STORE, f"setp.lt.u32 %p2, %r0, 0; @%p2 {_LOAD}", False),  # no thread executes it
    (_LOAD, _STORE, False),  # the other order
    ("st.shared.u32 [%r1], 1;", _LOAD, False),
    (_STORE, _FETCH, True),
    ("@%p1 st.global.u32 [%rd1], 1;", f"@%p1 {_FETCH}", False),
    ("shl.b32 %r4, %r0, 2; sust.b.1d.b32.trap [%rd6, {%r4}], %r0;", _LOAD, True),
    ("shl.b32 %r4, %r0, 2; sust.b.1d.b32.trap [%rd6, {%r4}], %r0;", _FETCH, True),
    (_STORE, "suld.b.1d.b32.trap %r3, [%rd6, {0}];", False),
    ("st.global.u64 [%rd1], %rd1;", "ld.global.u64 %rd7, [%rd1]; ld.global.nc.u32 %r3, [%rd7];", True),  # no parameter
    ("st.global.u64 [%rd1], %rd1;",
     "ld.global.u64 %rd7, [%rd1]; mad.wide.u32 %rd8, %r0, 4, %rd7; ld.global.nc.u32 %r3, [%rd8];", True),
]  # fmt: skip


def _count(lines: list[str], **options: Any) -> tuple[list[Any], int]:
    """Return the findings of a kernel with these lines after `_PLACES`, and the number of the first line in the PTX."""
    text = module("\n".join([_PLACES, *lines]), 4, _DECLARED)
    words = np.zeros(128, np.float32)
    texture = ptxcount.Texture(words) if any("%rd5" in line for line in lines) else None
    arguments: list[Any] = [words, np.zeros(128, np.float32), texture, ptxcount.Surface(words)]
    found = execute_snippet(text, arguments, threads=64, distinct=True, unwritten="off", **options).findings
    return [finding for finding in found if finding.code == "stale-read"], text.splitlines().index(lines[0]) + 1


@pytest.mark.parametrize(("first", "second", "is_stale"), PATTERNS)
def test_noncoherent_load_of_written_bytes_is_stale(first: str, second: str, is_stale: bool) -> None:
    findings, line = _count([first, _BARRIER, second])
    assert [finding.source.ptx_line for finding in findings] == [line + 2] * is_stale


def test_block_reads_what_an_earlier_block_wrote() -> None:
    """Block 0 writes, and the other blocks load; no block reads its own words."""
    body = "mov.u32 %r4, %ctaid.x; setp.eq.u32 %p2, %r4, 0; @%p2 st.global.u32 [%rd2], 1; @!%p2 " + _LOAD
    (finding,), _ = _count([body], blocks=3)
    assert "stale read by block (1, 0, 0), thread (0, 0, 0)" in finding.message


def test_thread_that_reads_is_named() -> None:
    """Thread 40 writes the last byte of its word, which begins at byte 160; thread 41 loads this word."""
    (finding,), _ = _count(["@%p1 st.global.u8 [%rd2+3], 1;", _BARRIER, _LOAD])
    assert "thread (41, 0, 0): non-coherent load of 4 bytes at byte 160 of argument 0" in finding.message


def test_message_names_lines_and_remedy() -> None:
    source = """__global__ void k(float* x, float* y) {
        x[threadIdx.x] = 1;
        __syncthreads();
        y[threadIdx.x] = __ldg(x + (threadIdx.x ^ 1)); }"""
    (finding,) = ptxcount.count(source, "k", 1, 64, [np.zeros(64, np.float32) for _ in range(2)]).findings
    assert (finding.code, finding.source.line) == ("stale-read", 4)
    assert "thread (0, 0, 0): non-coherent load of 4 bytes at byte 4 of argument 0, which the" in finding.message
    assert "which the kernel wrote at source.cu:2 (PTX line " in finding.message
    assert finding.message.endswith("use __ldcg(), or pointers without const __restrict__")


@pytest.mark.parametrize(("code", "is_index"), [("shl.b64 %rd9, %rd8, 2;", True), ("mov.u64 %rd9, %rd8;", False)])
def test_scaled_loaded_value_is_an_index(code: str, is_index: bool) -> None:
    """Stores to other arrays than array 0 are recorded only if the loaded value may be an address."""
    body = f"{_PLACES} ld.global.u64 %rd8, [%rd1]; {code} add.u64 %rd10, %rd1, %rd9; ld.global.nc.u32 %r3, [%rd10];"
    reached_names = load_executable(module(body, 4, _DECLARED), "snippet").reached_names
    assert (ANYTHING in reached_names.noncoherent_loads) != is_index
    assert ANYTHING in reached_names.loads


@pytest.mark.parametrize("policy", ["report", "strict", "error", "off"])
def test_policy_of_races_applies(policy: str) -> None:
    lines = [_STORE, _BARRIER, _LOAD]
    if policy == "error":
        with pytest.raises(ptxcount.StaleReadError, match=r"^PTX line \d+: stale read by block"):
            _count(lines, races=policy)
    else:
        assert len(_count(lines, races=policy)[0]) == (policy != "off")


def test_last_writer_is_named() -> None:
    """Each of 300 lines stores to a word of its own; after the first 254, writers are not told apart."""
    for number in (1, 254, 255, 300):
        stores = [f"@%p1 st.global.u8 [%rd1+{place}], 1;" for place in range(300)]
        (finding,), line = _count([*stores, f"@%p1 ld.global.nc.u8 %r3, [%rd1+{number - 1}];"])
        writer = f" at PTX line {line + number - 1}: " if number < 255 else ": it may"
        assert f"which the kernel wrote{writer}" in finding.message


def _make_line(rng: random.Random) -> tuple[str, str, int, list[int]]:
    """Return an instruction, its opcode, its bytes per thread, and the first byte of each thread."""
    opcode, width = rng.choice(["st.global", "ld.global", "ld.global.nc", "red.global.add"]), 4 << rng.randrange(3)
    factor, offset, start = rng.randrange(4), rng.randrange(32), rng.randrange(64)
    count = 256 // width
    address = f"mad.lo.u32 %r4, %r0, {factor}, {offset}; and.b32 %r4, %r4, {count - 1};"
    code = f"{address} mad.wide.u32 %rd7, %r4, {width}, %rd1; setp.ge.u32 %p2, %r0, {start};"
    registers = {4: "%r5", 8: "{%r5, %r6}", 16: "{%r5, %r6, %r7, %r8}"}[width]
    vector = {4: "", 8: ".v2", 16: ".v4"}[width]
    if opcode == "red.global.add":
        return f"{code} @%p2 {opcode}.u32 [%rd7], 1;", opcode, 4, _find_bytes(factor, offset, start, count, width)
    operands = f"[%rd7], {registers}" if opcode == "st.global" else f"{registers}, [%rd7]"
    places = _find_bytes(factor, offset, start, count, width)
    return f"{code} @%p2 {opcode}{vector}.u32 {operands};", opcode, width, places


def _find_bytes(factor: int, offset: int, start: int, count: int, width: int) -> list[int]:
    return [(thread * factor + offset) % count * width for thread in range(start, 64)]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_match_sets_of_bytes(seed: int) -> None:
    rng = random.Random(seed)
    program = [_make_line(rng) for _ in range(12)]
    written, stale_lines = set[int](), set[int]()
    for place, (_, opcode, width, starts) in enumerate(program):
        touched = {byte for start in starts for byte in range(start, start + width)}
        if opcode == "ld.global.nc" and not written.isdisjoint(touched):
            stale_lines.add(place)
        written |= touched if opcode in ("st.global", "red.global.add") else set()
    findings, line = _count([code for code, *_ in program])
    assert {finding.source.ptx_line - line for finding in findings} == stale_lines
