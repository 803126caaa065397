"""The parser: texts that it accepts, and texts that it refuses with a PtxError."""

import random
import re

import numpy as np
import pytest

from ptxcount.engine.executable import prepare_executable
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument
from ptxcount.ptx.parser import parse
from ptxcount.ptx.program import Address, Group, Immediate, Register, Special, Symbol
from ptxcount.util.errors import PtxError, PtxSyntaxError
from tests.ptxcount import sources


def test_program_is_parsed() -> None:
    text = """
    .version 9.0
    .target sm_90, debug
    .address_size 64
    .const .align 4 .f32 table[2] = {0f3F800000, 2.5};  // initialised
    .extern .shared .align 16 .b8 dynamic[]; .global .u64 near = generic(table)+8-4;
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
    .file 1 "folder/kernel.cu", 1700000000, 4096
    .file 2 "folder/other.cu"
    """
    program = parse(text)
    entry = program.entries["k"].parse_body()
    assert [(p.name, p.size) for p in entry.parameters] == [("out", 8), ("by_value", 12)]
    assert program.variables["table"].initial == np.array([1.0, 2.5], np.float32).tobytes()
    assert program.variables["dynamic"].size is None
    assert program.variables["near"].addresses == ((0, "table", 4),)
    assert (entry.variables["slots"].size, entry.variables["slots"].align) == (32, 8)
    assert entry.labels == {"AGAIN": 1, ".nounroll4": 4}
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


@pytest.mark.parametrize(("declaration", "words", "size"), [
    ("x[2][2] = {{1, 2}, {3, 4}}", [1, 2, 3, 4], 16), ("x[][2] = {{1, 2}, {3, 4}}", [1, 2, 3, 4], 16),
    ("x[] = {1, 2}", [1, 2], 8), ("x[4] = {1}", [1], 16), ("x[][2] = {{1}}", [1], 8),
    ("x[2][2] = {{1}, {3}}", [1, 3], 16),
])  # fmt: skip
def test_initial_values_are_those_of_ptxas(declaration: str, words: list[int], size: int) -> None:
    """The machine code of ptxas 13.0.88 has these words, and then zeros up to the size."""
    variable = parse(f".version 8.0\n.target sm_90\n.global .u32 {declaration};").variables["x"]
    assert (variable.initial, variable.size, variable.problem) == (np.array(words, np.uint32).tobytes(), size, "")


@pytest.mark.parametrize("kind", ["b8", "u16", "s32", "u64", "f32"])
def test_table_of_decimal_integers_as_number_by_number(kind: str) -> None:
    """Decimal integers alone are read without tokens; a number in base 16 needs tokens."""
    tables = [f".global .{kind} x[4] = {{255,\n70000 , {number},0}};\n" for number in ("4294967297", "0x100000001")]
    first, second = (parse(table).variables["x"] for table in tables)
    assert (first.initial, first.problem) == (second.initial, second.problem)
    with pytest.raises(PtxSyntaxError, match="PTX line 3: expected a directive, found 'wrong'"):
        parse(f"{tables[0]}wrong")


INVALID_PTX = [
    ("hello world", "line 1: expected a directive, found 'hello'"),
    (".version 8.0\n#include <x>", "line 2: unexpected character '#'"),
    (".entry k()\n{\nret;", "line 3: expected '}', found 'end of file'"),
    (".entry k()\n{\nmov.u32 %r1, 5\n}\n.entry other() { ret; }", "line 4: expected ';', found '}'"),
    (".entry k()\n{\nret;\n5 + 5;\n}", "line 4: expected an instruction, found '5'"),
    (".entry k()\n{\nL: ret;\nL: ret;\n}", "line 4: the label 'L' is defined twice"),
    (".entry k() { ret; }\n.entry k() { ret; }", "line 2: the kernel 'k' is defined twice"),
    (".entry k()\n{\n.reg .b32 %r1;\nmov.u32 %r1, {5;\n}", "line 5: expected '}', found 'end of file'"),
    (".global .u32 x", "line 1: expected '{', '}' or ';', found 'end of file'"),
]


@pytest.mark.parametrize(("text", "problem"), INVALID_PTX)
def test_invalid_ptx_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        [entry.parse_body() for entry in parse(text).entries.values()]
    assert str(caught.value) == f"PTX {problem}"


def test_kernels_are_parsed_on_demand() -> None:
    """An error in another kernel does not matter, nor does a brace in a comment or a text."""
    body = '{ .reg .b32 %r1; // }\n mov.u32 %r1, {1, 2}; .pragma "}"; /* } */ ret; }\n'
    kernels = [f".visible .entry k{n}(.param .u64 x) {body}" for n in range(200)]
    broken = ".entry broken() { what ? is : this }"
    text = "\n".join([*kernels, broken, ".entry asked() {\n ret; }"])
    program = parse(text)
    assert not any(entry.instructions for entry in program.entries.values())
    assert [len(entry.parameters) for entry in program.entries.values()] == [1] * 200 + [0] * 2
    execute_kernel(text, "asked", (1, 1, 1), (1, 1, 1), [])
    (instruction,) = program.entries["asked"].parse_body().instructions
    assert instruction.source.ptx_line == len(text.splitlines()), "lines are those of the whole text"
    # a second call gives the same
    assert program.entries["k7"].parse_body().instructions == program.entries["k7"].parse_body().instructions
    line = text.splitlines().index(broken) + 1
    with pytest.raises(PtxSyntaxError, match=rf"PTX line {line}: expected an operand, found '\?'"):
        execute_kernel(text, "broken", (1, 1, 1), (1, 1, 1), [])


@pytest.mark.parametrize(("count", "problem"), [
    (0, "x is not declared as a variable"), (2**32, "x is not declared as a variable"),  # no number of elements
    (4, "access out of bounds"), (2**32 - 1, "a block has 4294967295 bytes of static shared memory"),
])  # fmt: skip
def test_number_of_elements_is_limited(count: int, problem: str) -> None:
    text = f".entry k() {{ .shared .b8 x[{count}]; .reg .b32 %r1; ld.shared.u32 %r1, [x+4]; ret; }}"
    with pytest.raises(PtxError, match=problem):
        execute_kernel(text, "k", (1, 1, 1), (1, 1, 1), [])


@pytest.mark.parametrize(("header", "is_own"), [
    ("header.h", True), ("/usr/include/header.h", False), ("/v/site-packages/a.cuh", False), ("pointer.jl", False),
])  # fmt: skip
@pytest.mark.parametrize(("kernel_file", "header_file"), [(1, 2), (2, 1)])
def test_code_inlined_from_foreign_files_has_the_line_of_its_call(
    kernel_file: int, header_file: int, header: str, is_own: bool
) -> None:
    text = f"""
    .entry k() {{
        .loc {kernel_file} 7 3
        bar.sync 0;
        .loc {header_file} 5 1, function_name $called, inlined_at {kernel_file} 9 1
        bar.sync 0;
        .loc {kernel_file} 3 1, function_name $other, inlined_at {header_file} 5 1
        bar.sync 0;
    }}
    .file {kernel_file} "kernel.cu"
    .file {header_file} "{header}"
    """
    plain, called, nested = (instruction.source for instruction in parse(text).entries["k"].parse_body().instructions)
    line = "header.h:5" if is_own else "kernel.cu:9"
    assert plain[1:] == ("kernel.cu", 7, "")
    assert called[1:] == (("header.h", 5, "kernel.cu:9") if is_own else ("kernel.cu", 9, ""))
    assert nested[1:] == ("kernel.cu", 3, line)
    assert str(nested).startswith(f"kernel.cu:3, inlined at {line} (PTX line ")


def test_inline_assembly_has_the_line_of_its_statement() -> None:
    """A ``.loc`` within it is ignored. The barriers are on lines 7 and 11 of the PTX."""
    text = """
    .entry k() {
        .loc 1 10 5
        // begin inline asm
        {
        .loc 1 12 5
        bar.sync 0;
        }
        // end inline asm
        .loc 1 11 5
        bar.sync 0;
    }
    .file 1 "kernel.py"
    """
    sources = [instruction.source for instruction in parse(text).entries["k"].parse_body().instructions]
    assert [(source.ptx_line, source.line) for source in sources] == [(7, 10), (11, 11)]


def test_labels_may_repeat_in_scopes() -> None:
    """Inline assembly has such scopes. The first adds 1 up to 5; the second adds 100 until the sum is 200 or more."""
    text = """
    .entry k(.param .u64 out) {
        .reg .b32 %r<3>; .reg .b64 %rd1; .reg .pred p;
        mov.u32 %r1, 0;
        { L: add.u32 %r1, %r1, 1; setp.lt.u32 p, %r1, 5; @p bra L; }
        { mov.u32 %r2, 1; T: .branchtargets L, D; brx.idx %r2, T;
          L: add.u32 %r1, %r1, 100; D: setp.lt.u32 p, %r1, 200; @p bra L; }
        ld.param.u64 %rd1, [out];
        st.global.u32 [%rd1], %r1;
        ret;
    }
    """
    out = np.zeros(1, np.uint32)
    execute_kernel(text, "k", (1, 1, 1), (1, 1, 1), [out])
    assert out.tolist() == [5 + 2 * 100]


def _compile_kernels(name: str) -> dict[str, str]:
    """Compile a source; return a PTX module for each kernel, by its name. So a mutation hits that kernel."""
    header, *entries = re.split(r"(?=^\.visible \.entry )", sources.ptx(name), flags=re.MULTILINE)
    files = "".join(re.findall(r"^\t\.file.*\n", entries[-1], flags=re.MULTILINE))
    texts = [*(f"{header}{entry}{files}" for entry in entries[:-1]), header + entries[-1]]
    return {next(iter(parse(text).entries)): text for text in texts}


def _mutate(text: str, rng: random.Random) -> str:
    change, offset = rng.choice(("cut", "character", "gap", "copy", "drop", "word")), rng.randrange(len(text))
    lines, words = text.splitlines(), re.findall(r"[%$.\w]+", text)
    if change == "cut":
        return text[:offset]
    if change == "character":
        return text[:offset] + rng.choice('{}[]();,.%$@!|<>+-0x9 \n"/*_aé\x00') + text[offset + 1 :]
    if change == "gap":
        return text[:offset] + text[offset + rng.randrange(1, 30) :]
    if change == "word":
        return text[:offset] + text[offset:].replace(rng.choice(words), rng.choice(words), 1)
    line = lines[rng.randrange(len(lines))] if change == "copy" else lines.pop(rng.randrange(len(lines)))
    if change == "copy":
        lines.insert(rng.randrange(len(lines)), line)
    return "\n".join(lines)


def test_mutated_text_is_loaded_or_refused() -> None:
    rng, outcomes = random.Random(20240607), {"loaded": 0, "refused": 0}
    texts = [*_compile_kernels("features").values()]
    for _ in range(150):
        text = _mutate(rng.choice(texts), rng)
        try:
            program = parse(text)
            for entry in program.entries:
                prepare_executable(program, entry)
            outcomes["loaded"] += 1
        except PtxError as error:
            outcomes["refused"] += bool(re.match(r"PTX line \d+: ", str(error)))
    assert sum(outcomes.values()) == 150, "every refusal names a line"
    assert min(outcomes.values()) > 20, outcomes


def test_mutated_launches_end_or_raise() -> None:
    rng, refused = random.Random(7), 0
    text = _compile_kernels("features")["histogram"]
    for _ in range(150):
        mutated = _mutate(text, rng)
        args: list[Argument] = [np.zeros(16, np.uint32), np.arange(100, dtype=np.uint8), np.int32(100)]
        try:
            execute_kernel(mutated, "histogram", (2, 1, 1), (64, 1, 1), args, step_limit=2000)
        except PtxError as error:
            refused += bool(str(error))
    assert 25 < refused < 125, refused
