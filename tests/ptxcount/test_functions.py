"""Function pointers, virtual functions, heap, addresses as initial values, device runtime."""

import json
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.isa import runtime_calls
from ptxcount.util.errors import TrapError, UnsupportedInstructionError
from tests.ptxcount import sources
from tests.ptxcount.commands import read_output
from tests.ptxcount.snippets import execute_snippet, module

THREADS = np.arange(96)


def _shapes() -> Any:
    square, disc = THREADS.astype(float) ** 2, 3 * 2.0
    pair = square + 10 * disc
    return np.choose(THREADS % 4, [square, np.full(96, disc), pair, pair + 10 * square])


CHOICES = (THREADS * 7 % 3 == 0).astype(np.int32)
#: Kernel, arguments, and expected first argument.
CASES: list[tuple[str, list[Any], Any]] = [
    ("shapes", [np.zeros(96, np.float32)], _shapes()),
    ("chosen", [np.zeros(96, np.int32), CHOICES], np.where(CHOICES, THREADS * 3, THREADS + 3)),
    ("heap", [np.zeros(96, np.int32), np.int32(5)], np.where(THREADS % 2, (10 * THREADS) ** 2, 30 * THREADS)),
    ("addresses", [np.zeros(96, np.int32)],
     [5 * 1000 + (b"one\0", b"two\0")[t % 2][t % 3] for t in THREADS.tolist()]),
    ("jumps", [np.zeros(96, np.int32)], np.array([10, 11, 12, 11])[THREADS % 4]),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "arguments", "expected"), CASES, ids=[case[0] for case in CASES])
def test_divergent_calls_give_right_values(entry: str, arguments: list[Any], expected: Any) -> None:
    copies = [argument.copy() for argument in arguments]
    counters = sources.execute("functions", entry, copies, threads=96)
    np.testing.assert_array_equal(copies[0], expected)
    assert not counters.findings


def test_exhausted_heap_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread requests 800 bytes. The heap lacks one byte for a sixth thread."""
    monkeypatch.setattr(runtime_calls, "HEAP", 6 * 800 - 1)
    out = np.zeros(96, np.int32)
    (finding,) = sources.execute("functions", "heap", [out, np.int32(200)], threads=96).findings[:1]
    assert (finding.code, finding.times) == ("heap", 96 - 5)
    assert (out == -1).sum() == finding.times


@pytest.mark.parametrize("size", [runtime_calls.HEAP + 1, 2**63, 2**64 - 1])
def test_request_above_the_heap_fails_alone(size: int) -> None:
    """Thread 0 requests too much; the other threads request 16 bytes each."""
    source = """extern "C" __global__ void k(int* fails, size_t n) {
        fails[threadIdx.x] = malloc(threadIdx.x ? 16 : n) == nullptr;
    }"""
    fails = np.full(4, 7, np.int32)
    ptxcount.count(source, "k", 1, 4, [fails, np.uint64(size)])
    assert fails.tolist() == [1, 0, 0, 0]


def test_breakpoint_ends_the_kernel() -> None:
    """Thread 3 executes the breakpoint. A GPU without a debugger ends the kernel, too."""
    with pytest.raises(TrapError, match=r"thread \(3, 0, 0\)"):
        sources.execute("functions", "stopped", [np.zeros(96, np.int32)], threads=96)


def test_function_may_call_itself_once() -> None:
    text = """.func _Z1fi(.param .b32 left) {
        .reg .b32 %r<2>; .reg .pred %p<2>;
        ld.param.b32 %r1, [left]; setp.eq.u32 %p1, %r1, 0; @%p1 ret;
        sub.u32 %r1, %r1, 1; { .param .b32 rest; st.param.b32 [rest], %r1; call _Z1fi, (rest); } ret; }
    """
    for times in (1, 2):
        call = f"{{ .param .b32 n; st.param.b32 [n], {times}; call _Z1fi, (n); }}"
        refused = pytest.raises(UnsupportedInstructionError, match=r"'f\(int\)' is recursive; ptxcount inlines only")
        with refused if times > 1 else nullcontext():
            execute_snippet(module(call, 0, functions=text), [])


def test_child_kernel_is_a_finding() -> None:
    declared = (
        ".extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 k, .param .align 4 .b8 g[12], "
        ".param .align 4 .b8 b[12], .param .b32 s);\n.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, "
        ".param .b64 s);\n"
    )
    body = """
        { .param .b64 k; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
          mov.u64 %rd1, snippet; st.param.b64 [k], %rd1; call.uni (r), cudaGetParameterBufferV2, (k, g, b, s);
          ld.param.b64 %rd2, [r]; }
        st.u32 [%rd2], 7;
        { .param .b64 p; .param .b64 s; .param .b32 r; st.param.b64 [p], %rd2; st.param.b64 [s], 0;
          call.uni (r), cudaLaunchDeviceV2, (p, s); ld.param.b32 %r1, [r]; }
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; st.global.u32 [%rd1], %r1;
    """
    out = np.ones(32, np.uint32)
    counters = execute_snippet(module(body, 1, functions=declared), [out])
    assert [(finding.code, finding.times) for finding in counters.findings] == [("child-kernel", 32)]
    assert not out.any()
    assert counters.totals()["store_requests"] == 2  # to the child's parameter, and of the results


def test_graph_condition_is_a_finding() -> None:
    declared = ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
    body = """{ .param .b64 h; .param .b32 v; st.param.b64 [h], 5; st.param.b32 [v], %r0;
        call.uni cudaGraphSetConditional, (h, v); }"""
    (finding,) = execute_snippet(module(body, 0, functions=declared), []).findings
    assert (finding.code, finding.times) == ("graph-condition", 32)


def test_cache_policies_change_nothing() -> None:
    body = """
        createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 8, %rd1;
        ld.global.L1::evict_first.L2::cache_hint.v2.b32 {%r1, %r2}, [%rd1 + 128], %rd3;
        add.u32 %r1, %r1, %r2;
        st.global.L2::cache_hint.b32 [%rd1], %r1, %rd3;
    """
    words = np.arange(72, dtype=np.uint32)
    execute_snippet(module(body, 1), [words], threads=4)
    loaded = words[128 // 4 :]
    assert words[:8:2].tolist() == [loaded[2 * t] + loaded[2 * t + 1] for t in range(4)]


SOURCE = r"""
#include <cassert>
#include <cstdio>
extern "C" __global__ void say(int* a) { if (a[threadIdx.x] % 2) printf("%d|%s\n", a[threadIdx.x], "odd"); }
extern "C" __global__ void check(int* a, int n) { assert(a[threadIdx.x] < n); a[threadIdx.x] = 0; }
"""


def test_printf_is_a_finding() -> None:
    (finding,) = ptxcount.count(SOURCE, "say", 2, 32, [np.arange(32, dtype=np.int32)]).findings
    assert (finding.code, finding.times) == ("printf", 2 * 16)  # the odd numbers of two blocks


def test_counts_with_findings_fit_their_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "say.cu").write_text(SOURCE)
    words = [str(tmp_path / "say.cu"), "--entry", "say", "--grid", "1", "--block", "8", "a=int32[8]", "--json"]
    counts = json.loads(read_output(capsys, *words))
    schema = json.loads((files("ptxcount") / "count.schema.json").read_text(encoding="utf-8"))
    local = {f"local_store_{name}" for name in ("requests", "sectors", "useful_bytes")}  # address of the printed text
    assert {*counts} - {*schema["properties"]} == {*ptxcount.LaunchCounters(1).totals()} | local
    pytest.importorskip("jsonschema").validate(counts, schema)


def test_failed_assertion_is_a_fault() -> None:
    a = np.arange(64, dtype=np.int32)
    assert not ptxcount.count(SOURCE, "check", 1, 64, [a.copy(), np.int32(64)]).findings
    message = r"thread \(40, 0, 0\): assertion 'a\[threadIdx.x\] < n' failed in .*:5"
    with pytest.raises(ptxcount.TrapError, match=message):
        ptxcount.count(SOURCE, "check", 1, 64, [a, np.int32(40)])
