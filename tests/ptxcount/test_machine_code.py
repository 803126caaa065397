"""Merged accesses to shared memory against machine code of ptxas."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ptxcount.engine.executable import prepare_executable
from ptxcount.engine.sunk_loads import find_sunk_loads
from ptxcount.ptx.parser import parse
from ptxcount.ptx.program import TYPES
from tests.ptxcount.machine_code import HEADER, disassemble
from tests.ptxcount.machine_code_kernels import KERNELS, kernel
from tests.ptxcount.snippets import execute_snippet, module
from tests.ptxcount.sunk_kernels import write_groups, write_kernels

#: Kind and bytes of an access to shared memory -> number of accesses.
Accesses = Counter[tuple[str, int]]
_SASS = re.compile(r"\b(LDS|STS)((?:\.[A-Z0-9]+)*) ")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def count_accesses(text: str, nvdisasm: Path, folder: Path) -> dict[str, Accesses]:
    """Count the accesses to shared memory in the machine code of each kernel."""
    kernels: dict[str, Accesses] = {}
    for name, lines in disassemble(text, nvdisasm, folder).items():
        kernels[name] = Counter()
        for match in _SASS.finditer("\n".join(lines)):
            width = next((_WIDTHS[word] for word in match[2].split(".") if word in _WIDTHS), 4)
            kernels[name]["load" if match[1] == "LDS" else "store", width] += 1
    return kernels


def predict(text: str) -> dict[str, Accesses]:
    """Return the accesses to shared memory of each kernel, as ptxcount merges them."""
    program, kernels = parse(text), {}
    for name in program.entries:
        executable = prepare_executable(program, name)
        accesses: Accesses = Counter()
        for group in executable.mergeable_groups:
            accesses.update((group.kind, width) for _, width in group.list_accesses())
        grouped = {instruction for group in executable.mergeable_groups for instruction in group.instructions}
        for instruction in executable.entry.instructions:
            kind = {"ld": "load", "st": "store"}.get(instruction.opcode)
            if kind and "shared" in instruction.modifiers and id(instruction) not in grouped:
                elements = {"v2": 2, "v4": 4}.get(instruction.modifiers[1], 1)
                accesses[kind, TYPES[instruction.modifiers[-1]].size * elements] += 1
        kernels[name] = accesses
    return kernels


def test_accesses_merge_as_in_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    text = HEADER + "".join(kernel(f"k{number}", code) for number, code in enumerate(KERNELS))
    predicted, expected = predict(text), count_accesses(text, nvdisasm, tmp_path)
    assert [code for n, code in enumerate(KERNELS) if predicted[f"k{n}"] != expected[f"k{n}"]] == []


@pytest.mark.parametrize("kind", ["ld", "st"])
def test_subsets_and_orders_of_words_merge_as_in_ptxas(kind: str, nvdisasm: Path, tmp_path: Path) -> None:
    """Subsets of seven words in ascending order, a run of eight words, and all orders of four words."""
    subsets = [choice for count in range(1, 8) for choice in itertools.combinations(range(7), count)]
    choices = [*subsets, tuple(range(8)), *itertools.permutations(range(4))]
    codes = [" ".join(f"{kind}{4 * word}" for word in words) for words in choices]
    text = HEADER + "".join(kernel(f"k{number}", code) for number, code in enumerate(codes))
    predicted = predict(text)
    assert len(predicted) == len(choices)
    assert predicted == count_accesses(text, nvdisasm, tmp_path)


def _write_partly_used_vectors(has_mask: bool) -> Iterator[str]:
    """Yield code that loads four words, uses two or more of them, and loads others before or behind them."""
    for used, single in itertools.product(range(1, 16), range(16)):
        words = [word for word in range(4) if used >> word & 1]
        if len(words) == 1 or used & single:
            continue
        mask = f'.pragma "used_bytes_mask {sum(15 << 4 * word for word in words)}"; ' if has_mask else ""
        stores = " ".join(f"st.global.u32 [%d3+{4 * word}], %r3{word};" for word in words)
        vector = f"<{mask}ld.shared.v4.u32 {{%r30, %r31, %r32, %r33}}, [%r3]; {stores}>"
        loads = [f"ld{4 * word}" for word in range(4) if single >> word & 1]
        yield from (" ".join([vector, *loads]), " ".join([*loads, vector]))


@pytest.mark.parametrize("has_mask", [True, False])
def test_partly_used_vectors_merge_as_in_ptxas(has_mask: bool, nvdisasm: Path, tmp_path: Path) -> None:
    codes = [*_write_partly_used_vectors(has_mask)]
    text = HEADER + "".join(kernel(f"k{number}", code) for number, code in enumerate(codes))
    predicted, expected = predict(text), count_accesses(text, nvdisasm, tmp_path)
    assert [code for n, code in enumerate(codes) if predicted[f"k{n}"] != expected[f"k{n}"]] == []


def test_loads_sink_as_in_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    """In machine code, sunk loads follow the exit of the threads that do not store."""
    kernels = write_kernels()
    text = HEADER + "".join(kernels.values())
    program, wrong = parse(text), []
    for name, lines in disassemble(text, nvdisasm, tmp_path).items():
        exits = [index for index, line in enumerate(lines) if re.search(r"@!?P\d\s+EXIT", line)]
        after_exit = lines[exits[0] :] if exits else []
        executable = prepare_executable(program, name)
        sunk = find_sunk_loads(executable.entry.instructions, executable.flow.blocks)
        if len(sunk) != sum("LDS" in line for line in after_exit):
            wrong.append(kernels[name].splitlines()[-2])
    assert wrong == []


def test_merged_loads_sink_as_in_ptxas(nvdisasm: Path, tmp_path: Path) -> None:
    """Loads that merge sink together, or not at all. Each has as many bytes as in machine code."""
    kernels = write_groups()
    text = HEADER + "".join(kernels.values())
    program, wrong = parse(text), []
    for name, lines in disassemble(text, nvdisasm, tmp_path).items():
        exits = (index for index, line in enumerate(lines) if re.search(r"@!?P\d\s+EXIT", line))
        first_exit = next(exits, len(lines))
        expected = Counter(
            (index > first_exit, _WIDTHS.get(width, 4))
            for index, line in enumerate(lines)
            for width in re.findall(r"\bLDS\.?(\w*)", line)
        )
        groups = [group for group in prepare_executable(program, name).mergeable_groups if group.kind == "load"]
        predicted = Counter((group.store is not None, width) for group in groups for _, width in group.list_accesses())
        if predicted != expected:
            wrong.append(kernels[name].splitlines()[-2])
    assert wrong == []


@pytest.mark.parametrize(("amount", "can_merge"), [(4, True), (68, False)])
def test_shift_beyond_the_width_is_zero(amount: int, can_merge: bool) -> None:
    """Two loads are adjacent if the shift, too, multiplies the thread's index by 16."""
    body = f"""
        mov.u32 %r1, s; shl.b32 %r2, %r0, {amount}; add.s32 %r3, %r1, %r2; mad.lo.s32 %r4, %r0, 16, %r1;
        ld.shared.u32 %r5, [%r3]; ld.shared.u32 %r6, [%r4+4]; add.u32 %r7, %r5, %r6; st.shared.u32 [s], %r7;
    """
    program = parse(module(body, 0, ".shared .align 16 .b8 s[1024];"))
    groups = prepare_executable(program, "snippet").mergeable_groups
    assert any(group.kind == "load" for group in groups) is can_merge


def test_sunk_load_counts_for_the_storing_threads() -> None:
    """One of 96 threads stores the sum, and only its warp loads it, once in each of four blocks."""
    body = """
        ld.param.u64 %rd1, [p0]; mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd1, %r1, 4, %rd1; mov.u32 %r2, s;
        setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r2], 7; bar.sync 0;
        ld.shared.u32 %r3, [%r2]; add.u32 %r4, %r3, 1; @%p1 st.global.u32 [%rd1], %r4;
    """
    out = np.zeros(4, np.uint32)
    text = module(body, 1, ".shared .align 4 .b8 s[4];")
    counters = execute_snippet(text, [out], threads=96, blocks=4)
    assert out.tolist() == [8] * 4
    assert (counters.shared_loads.requests, counters.merged["load"]) == (3 * 4, (4, 4))
