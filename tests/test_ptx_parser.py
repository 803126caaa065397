"""The parser: what it reads, what it refuses, and that it never fails in any other way."""

from __future__ import annotations

import contextlib
import random
import re

import numpy as np
import pytest

from benchmarks.instruments import counted
from benchmarks.instruments.ptx.errors import PtxError, PtxSyntaxError, UnsupportedInstructionError
from benchmarks.instruments.ptx.execute import Argument, load, prepare, run
from benchmarks.instruments.ptx.parser import parse
from benchmarks.instruments.ptx.program import Address, Group, Immediate, Register, Special, Symbol
from gpu_kernels import catalog, flags
from tests import cuda
from tests.snippets import module


def test_program() -> None:
    """Parameters, variables, labels, guards, operands and lines."""
    text = """
    .version 9.0
    .target sm_90, debug
    .address_size 64
    .const .align 4 .f32 table[2] = {0f3F800000, 2.5};  // initialised
    .extern .shared .align 16 .b8 dynamic[];
    /* two
       lines */
    .visible .entry k(.param .u64 .ptr .global .align 8 out, .param .align 4 .b8 by_value[12])
    .maxntid 128, 1, 1
    {
        .reg .pred %p<3>;
        .reg .b32 %r<5>, %single;
        .shared .align 8 .b64 slots[4];
        .loc 1 7 3
        mov.u32 %r1, %tid.x;
    AGAIN:
        { .reg .b32 %r<2>; mov.b32 %r1, 0xFFU; }
        @!%p1 ld.shared::cta.v2.u32 {%r2, _}, [slots+8];
        setp.lt.and.s32 %p1|%p2, %r1, -5, !%p2;
        .pragma "nounroll";
        bra.uni AGAIN;
    }
    .file 1 "folder/kernel.cu"
    """
    program = parse(text)
    entry = program.entries["k"]
    assert [(p.name, p.size) for p in entry.parameters] == [("out", 8), ("by_value", 12)]
    assert program.variables["table"].initial == np.array([1.0, 2.5], np.float32).tobytes()
    assert program.variables["dynamic"].size is None
    assert (entry.variables["slots"].size, entry.variables["slots"].align) == (32, 8)
    assert entry.labels == {"AGAIN": 1}
    index, inner, read, compare, jump = entry.instructions
    assert (index.name, index.operands[1]) == ("mov.u32", Special("%tid.x"))
    assert str(index.source) == "folder/kernel.cu:7 (PTX line 16)"
    assert isinstance(index.operands[0], Register)
    assert isinstance(inner.operands[0], Register)
    assert index.operands[0].name != inner.operands[0].name, "a scope has registers of its own"
    assert inner.operands[1] == Immediate(255)
    assert read.guard is not None
    assert read.guard.negated
    assert read.operands[1] == Address(Symbol("slots"), 8)
    assert isinstance(compare.operands[0], Group)
    assert compare.operands[2] == Immediate(-5)
    assert jump.operands == (Symbol("AGAIN"),)


REFUSED = [
    ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [t, {%r1, %r2}];", "'tex.2d.v4.f32.f32' is not supported"),
    ("wgmma.fence.sync.aligned;", "'wgmma.fence.sync.aligned' is not supported"),
    ("call.uni (retval0), vprintf, (param0, param1);", "'call.uni' is not supported"),
    (".param .b64 param0;", "'call' is not supported: nvcc did not inline a function"),
    ("add.rz.f32 %r1, %r2, %r3;", "'add.rz.f32' is not supported"),
    ("cp.async.ca.shared.global [%rd1], [%rd2], 16;", "'cp.async.ca.shared.global' is not supported"),
    ("mov.u32 %r1, %clock;", "'%clock' is not supported"),
    ("mov.u32 %r1, %q7;", "'%q7' is not supported"),
    ("bar.sync 1, 64;", "'bar.sync' is not supported: only barriers of all threads"),
    ("brx.idx %r1, table;", "'brx.idx' is not supported"),
    ("ld.global.v4.u64 {%rd1, %rd2, %rd3}, [%rd4];", "ld.global.v4.u64: 4 elements wanted, 3 given"),
    ("add.s32 %r1, %r2;", "add.s32: 2 operands, not 3"),
    ("add.s32 %rd1, %r2, %r3;", "register %rd1 is .b64, which does not fit .s32"),
    ("add.s32 5, %r2, %r3;", "cannot be written"),
    ("bra NOWHERE;", "bra wants a label of this kernel"),
    ("mov.u32 %r1, ;", "expected an operand, found ';'"),
    ("mov.u32 %r1, 0f3F80;", None),
    ("#", "unexpected character '#'"),
]


@pytest.mark.parametrize(("line", "text"), REFUSED)
def test_refusal(line: str, text: str | None) -> None:
    """One clear error that names the line and what is wrong there."""
    source = module(line, 1)
    number = next(n for n, content in enumerate(source.splitlines(), start=1) if content == line)
    with pytest.raises((PtxSyntaxError, UnsupportedInstructionError)) as caught:
        load(source, "snippet")
    assert str(caught.value).startswith(f"PTX line {number}: ")
    assert text is None or text in str(caught.value)


def _real() -> list[str]:
    texts = [counted.ptx(name, "complex128", flags.DEFAULT) for name in catalog.KERNELS]
    return [*texts, cuda.ptx("features")]


def _mutated(text: str, rng: random.Random) -> str:
    """Real PTX after one accident: cut off, a line lost or doubled, a character or a word exchanged."""
    lines = text.splitlines()
    kind, at = rng.randrange(6), rng.randrange(len(text))
    line = rng.randrange(len(lines))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + rng.choice('{}[]();,.%$@!|<>+-0x9 \n"/*_aé\x00') + text[at + 1 :]
    if kind == 2:
        return text[:at] + text[at + rng.randrange(1, 30) :]
    if kind in (3, 4):
        lines.insert(rng.randrange(len(lines)), lines[line]) if kind == 3 else lines.pop(line)
        return "\n".join(lines)
    words = re.findall(r"[%$.\w]+", text)
    old, new = rng.choice(words), rng.choice(words)
    return text[:at] + text[at:].replace(old, new, 1)


def test_accidents() -> None:
    """Mutated PTX either loads or gives the clear error; nothing else is ever raised."""
    rng, outcomes = random.Random(20240607), {"loaded": 0, "refused": 0}
    texts = _real()
    for _ in range(400):
        text = _mutated(rng.choice(texts), rng)
        try:
            program = parse(text)
            for entry in program.entries:
                prepare(program, entry)
            outcomes["loaded"] += 1
        except PtxError as error:
            outcomes["refused"] += bool(re.match(r"PTX line \d+: ", str(error)))
    assert sum(outcomes.values()) == 400, "every refusal names a line"
    assert min(outcomes.values()) > 100, outcomes


def test_accidents_at_run_time() -> None:
    """What still loads after an accident runs to an end, or to a clear error."""
    rng = random.Random(7)
    text = counted.ptx("transpose_read_write_coalesced", "float32", flags.DEFAULT)
    for _ in range(300):
        mutated = _mutated(text, rng)
        source = np.arange(40 * 35, dtype=np.float32)
        args: list[Argument] = [np.zeros_like(source), source, np.int64(40), np.int64(35)]
        with contextlib.suppress(PtxError):
            run(mutated, "transpose_read_write_coalesced", (2, 2, 1), (32, 32, 1), args, step_limit=2000)


def test_other_kernels_do_not_matter() -> None:
    """A kernel runs although another one of the same file is not supported."""
    good, bad = module("", 1), module("wgmma.fence.sync.aligned;\n.param .b64 a;", 0)
    text = good + bad[bad.index(".visible") :].replace("snippet", "other")
    run(text, "snippet", (1, 1, 1), (1, 1, 1), [np.zeros(1)])
    with pytest.raises(UnsupportedInstructionError, match="wgmma"):
        load(text, "other")
