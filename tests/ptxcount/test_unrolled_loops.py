"""Loops that ptxas unrolls: accesses in machine code, and in counts."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ptxcount.engine.counted_loops import iter_counted_loops
from ptxcount.engine.executable import prepare_executable
from ptxcount.ptx.parser import parse
from tests.ptxcount.machine_code import HEADER, disassemble
from tests.ptxcount.snippets import execute_snippet, module

#: Ends of a loop that ptxas unrolls: name, step of the counter, bound, and type.
_COUNTED = [
    ("lt", 1, "%r2", "s32"), ("lt", 4, "%r2", "s32"), ("le", 1, "%r2", "s32"), ("lt", 32, "%r2", "u32"),
    ("gt", -1, "0", "s32"), ("ge", -4, "%r2", "s32"), ("gt", -4, "0", "u32"), ("ne", -4, "0", "s32"),
    ("ne", -4, "1", "s32"), ("ne", 4, "0", "s32"), ("ne", 4, "0", "u32"), ("ne", 1, "%r2", "s32"),
    ("lt", 4, "8", "u32"),
]  # fmt: skip
#: Code that an iteration has, besides, and its cost.
_COSTS = {
    "": 0, "fma.rn.f32 %f2, %f1, %f2, %f1;": 1, "mov.f32 %f3, %f1; add.f32 %f2, %f2, %f3;": 1,
    "ld.global.f32 %f3, [%d0+512]; add.f32 %f2, %f2, %f3;": 3,
    "ld.global.nc.v4.f32 {%f3, %f4, %f5, %f6}, [%d0+512]; add.f32 %f2, %f2, %f4; add.f32 %f2, %f2, %f6;": 4,
    "mul.wide.s32 %d4, %r1, 4; add.s64 %d4, %d4, %d1; ld.global.f32 %f3, [%d4]; add.f32 %f2, %f2, %f3;": 4,
    "ex2.approx.f32 %f3, %f1; add.f32 %f2, %f2, %f3;": 7, "ex2.approx.ftz.f32 %f3, %f1; add.f32 %f2, %f2, %f3;": 2,
    "div.full.f32 %f3, %f1, %f2; add.f32 %f2, %f2, %f3;": 13, "sin.approx.f32 %f3, %f1; add.f32 %f2, %f2, %f3;": 2,
    "rem.s32 %r3, %r1, %r2; add.s32 %r4, %r4, %r3;": 25, "rem.u32 %r3, %r1, %r2; add.s32 %r4, %r4, %r3;": 20,
    "setp.gt.f32 %p3, %f1, %f2; selp.f32 %f2, %f1, %f2, %p3;": 2,
}  # fmt: skip
#: Code with which ptxas keeps a loop.
_KEPT = [
    "div.rn.f32 %f2, %f1, %f2;",
    "sqrt.rn.f32 %f2, %f1;",
    "membar.gl;",
    "ld.global.u32 %r2, [%d0+512];",
    "red.global.add.f32 [%d1], %f1;",
    "atom.global.cas.b32 %r3, [%d1], %r1, %r2;",
    "shfl.sync.bfly.b32 %f2, %f1, 1, 31, -1;",
    "setp.gt.f32 %p3, %f1, %f2; vote.sync.ballot.b32 %r3, %p3, -1; add.s32 %r4, %r4, %r3;",
    "bar.warp.sync -1;",
    "mul.wide.s32 %d4, %r1, 4; add.s64 %d4, %d4, %d1; st.global.f32 [%d4], %f1;",
    "setp.gt.u32 %p3, %r0, 7; @%p3 st.global.f32 [%d0+512], %f1;",
]
#: Code with which ptxas unrolls a loop.
_UNROLLED = [
    "", "st.shared.f32 [%r0], %f1;", "prefetch.global.L2 [%d1];",
    "setp.gt.u32 %p3, %r0, 7; @%p3 st.shared.f32 [%r0], %f1;", "ld.volatile.global.f32 %f2, [%d0+512];",
    "mul.wide.s32 %d4, %r1, 4; add.s64 %d4, %d4, %d2; st.local.f32 [%d4], %f1;",
]  # fmt: skip


def _write_kernel(name: str, more: str = "", end: tuple[str, int, str, str] = _COUNTED[0], label: str = "") -> str:
    comparison, step, bound, kind = end
    return f"""
.visible .entry {name}(.param .u64 a, .param .u64 b)
{{ .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<20>; .reg .pred %p<4>;
ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.u64 %d1, %d1, %d2;
ld.global.u32 %r1, [%d1+4096]; ld.global.u32 %r2, [%d1+8192]; setp.ge.s32 %p1, %r1, %r2; @%p1 bra END;
LOOP: {label} ld.global.f32 %f1, [%d0]; add.f32 %f2, %f2, %f1; add.s64 %d0, %d0, 4; {more}
add.s32 %r1, %r1, {step}; setp.{comparison}.{kind} %p2, %r1, {bound}; @%p2 bra LOOP;
END: {" ".join(f"add.f32 %f2, %f2, %f{n};" for n in range(7, 16))} cvt.rn.f32.u32 %f3, %r4; add.f32 %f2, %f2, %f3;
st.global.f32 [%d1], %f2; ret; }}
"""


def _count_loads(text: str, nvdisasm: Path, folder: Path) -> dict[str, int]:
    kernels = disassemble(text, nvdisasm, folder)
    return {name: len(re.findall(r"\bLDG\.", "\n".join(lines))) for name, lines in kernels.items()}


def _is_unrolled(text: str, name: str) -> bool:
    entry = parse(text).entries[name].parse_body()
    executable = prepare_executable(parse(text), name)
    return len(executable.entry.instructions) > len(entry.instructions)


def test_counted_loops_are_unrolled_as_in_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    """Machine code has 4 + 2 + 1 times a loop's loads, and 1 more if a bound is unsigned; but not by ``nounroll``.

    A loop has one or two loads, so 6 or 12 are added.
    """
    codes = [*((more, _COUNTED[0]) for more in (*_UNROLLED, *_KEPT)), *(("", end) for end in _COUNTED)]
    labels = {"k": "", "n": '.pragma "nounroll";'}
    texts = {
        f"{key}{n}": _write_kernel(f"{key}{n}", more, end, label)
        for n, (more, end) in enumerate(codes)
        for key, label in labels.items()
    }
    loads = _count_loads(HEADER + "".join(texts.values()), nvdisasm, tmp_path)
    unrolled = {name for name, text in texts.items() if _is_unrolled(HEADER + text, name)}
    assert unrolled == {name for name in texts if name[0] == "k" and loads[name] > loads[f"n{name[1:]}"]}
    assert {loads[name] - loads[f"n{name[1:]}"] for name in unrolled} <= {6, 7, 12}


def test_loops_up_to_a_cost_are_unrolled(nvdisasm: Path, tmp_path: Path) -> None:
    """A loop costs 7 by itself, and ptxas unrolls one of 50."""
    texts = dict[str, str]()
    for n, (more, cost) in enumerate(_COSTS.items()):
        sums = [f"fma.rn.f32 %f{7 + n % 9}, %f1, %f1, %f{7 + n % 9};" for n in range(44 - cost)]
        texts |= {f"most{n}": more + "".join(sums[1:]), f"over{n}": more + "".join(sums)}
    kernels = {name: _write_kernel(name, code) for name, code in texts.items()}
    loads = _count_loads(HEADER + "".join(kernels.values()), nvdisasm, tmp_path)
    unrolled = {name for name, text in kernels.items() if _is_unrolled(HEADER + text, name)}
    assert unrolled == {name for name in kernels if name.startswith("most")}
    assert unrolled == {name for name in kernels if loads[name] > loads[f"over{name[4:]}"]}


@pytest.mark.parametrize("end", _COUNTED, ids=str)
def test_unrolled_loops_compute_the_same(end: tuple[str, int, str, str]) -> None:
    """Threads leave after 1 to 19 iterations. Counts of instructions and bytes are those of the PTX."""
    comparison, step, bound, kind = end
    results = []
    for kept in ('.pragma "nounroll";', ""):
        body = f"""
            ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd2, %r0, 4, %rd1; rem.u32 %r5, %r0, 19; add.u32 %r5, %r5, 1;
            mov.u32 %r2, 1000; mov.u32 %r7, 0; mad.lo.s32 %r1, %r5, {-step}, {bound};
            LOOP: {kept} ld.global.u32 %r6, [%rd1]; mad.lo.u32 %r7, %r7, 31, %r6; mad.lo.u32 %r7, %r7, 31, %r1;
            add.s64 %rd1, %rd1, 4; add.s32 %r1, %r1, {step}; mad.lo.u32 %r7, %r7, 31, %r1;
            ld.global.u32 %r6, [%rd1+4096]; mad.lo.u32 %r7, %r7, 31, %r6; setp.{comparison}.{kind} %p1, %r1, {bound};
            @%p1 bra LOOP; cvt.u32.u64 %r6, %rd1;
            st.global.u32 [%rd2+256], %r7; st.global.u32 [%rd2+512], %r1; st.global.u32 [%rd2+768], %r6;
        """
        text, memory = module(body, 1), np.arange(2048, dtype=np.uint32)
        counters = execute_snippet(text, [memory], threads=64)
        accesses = [(access.source.ptx_line, access.useful_bytes) for access in counters.accesses]
        results.append((memory.tolist(), counters.thread_instructions, accesses))
        assert _is_unrolled(text, "snippet") == (not kept)
    assert results[0] == results[1]


def test_threads_that_leave_one_by_one_make_more_requests() -> None:
    """The lanes of a warp run 1 to 5 iterations: four at a time, then two, then one."""
    body = """
        ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1; rem.u32 %r2, %r0, {lengths}; mov.u32 %r1, 0;
        LOOP: ld.global.u32 %r3, [%rd1]; add.s64 %rd1, %rd1, 128; add.s32 %r1, %r1, 1; setp.le.s32 %p1, %r1, %r2;
        @%p1 bra LOOP; st.global.u32 [%rd1], %r3;
    """
    for lengths, requests in product((1, 2, 3, 4, 5), [{1: 1, 2: 3, 3: 3, 4: 7, 5: 7}]):
        counters = execute_snippet(module(body.replace("{lengths}", str(lengths)), 1), [np.ones(4096, np.uint32)])
        assert counters.loads.requests == requests[lengths]


@pytest.mark.parametrize(("kind", "wavefronts"), [("s32", 4), ("u32", 7)])
def test_neighbouring_words_of_iterations_merge(kind: str, wavefronts: int) -> None:
    """Seven iterations load words of shared memory: two pairs, a pair, and a word.

    With an unsigned counter, ptxas loads words: an iteration before the first four may move them (nvcc 13.0.88).
    """
    body = """
        ld.param.u64 %rd1, [p0]; mov.u32 %r1, 0; mov.u32 %r2, s; mov.u32 %r4, 0; ld.global.u32 %r5, [%rd1];
        LOOP: ld.shared.u32 %r3, [%r2]; xor.b32 %r4, %r4, %r3; add.s32 %r2, %r2, 4; add.s32 %r1, %r1, 1;
        setp.lt.{kind} %p1, %r1, %r5; @%p1 bra LOOP; st.global.u32 [%rd1+8], %r4;
    """
    text = module(body.replace("{kind}", kind), 1, ".shared .align 16 .b8 s[64];")
    counters = execute_snippet(text, [np.full(4, 7, np.uint32)])
    assert counters.merged["load"] == (wavefronts, wavefronts)
    entry = prepare_executable(parse(text), "snippet")
    assert [*iter_counted_loops(entry.entry, entry.flow)] == []
