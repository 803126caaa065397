"""Loops into which ptxas puts a ``YIELD``, against its machine code; `test_nsight_compute.py` has a GPU's counts."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount.engine.executable import Executable, prepare_executable
from ptxcount.engine.execute import execute_kernel
from ptxcount.engine.paths import find_paths
from ptxcount.engine.yields import find_yielding_loops
from ptxcount.ptx.flow import find_reachable
from ptxcount.ptx.parser import parse
from tests.gpu.launches import LAUNCHES
from tests.ptxcount import sources
from tests.ptxcount.machine_code import disassemble
from tests.ptxcount.snippets import module


@pytest.mark.parametrize(("file", "count"), [("exits", 20), ("yielding", 33), ("divergence", 0)])
def test_loops_yield_as_in_machine_code(file: str, count: int, nvdisasm: Path, tmp_path: Path) -> None:
    text = sources.ptx(file, arch="sm_90")
    program, code = parse(text), disassemble(text, nvdisasm, tmp_path)
    predicted = {name for name in program.entries if prepare_executable(program, name).order.yielding_loops}
    expected = {name for name, lines in code.items() if any(" YIELD" in line for line in lines)}
    assert predicted == expected
    assert len(expected) == count


def _prepare_loop(branches: int, label: str) -> Executable:
    """Prepare a loop from L to E with branches to a label."""
    code = "".join(f"add.u32 %r2, %r2, 1;\nsetp.eq.u32 %p2, %r2, {k};\n@%p2 bra {label};\n" for k in range(branches))
    loop = f"L: atom.shared.add.u32 %r3, [s], 1;\n{code}setp.ne.u32 %p1, %r3, 9;\n@%p1 bra L;\nE: mov.u32 %r1, 0;\n"
    return prepare_executable(parse(module(f".shared .b32 s[1];\n{loop}", 0)), "snippet")


def test_calls_grow_with_the_exits() -> None:
    """Twice the exits take twice the calls, not four times."""
    calls = Counter[int]()
    for branches in (200, 400):
        kernel = _prepare_loop(branches, "E")
        paths = find_paths(kernel.entry.instructions, kernel.flow)
        sys.setprofile(lambda *_, branches=branches: calls.update([branches]))
        loops = find_yielding_loops(paths)
        sys.setprofile(None)
        assert len(loops) == 1
    assert 1.8 < calls[400] / calls[200] < 2.2


@pytest.mark.parametrize(("name", "label", "most"), [("machine.polls", "L", 500), ("engine.uniformity", "E", 10)])
def test_branches_of_a_loop_share_searches(name: str, label: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0

    def count_search(*arguments: Any) -> set[int]:
        nonlocal searches
        searches += 1
        return find_reachable(*arguments)

    monkeypatch.setattr(f"ptxcount.{name}.find_reachable", count_search)
    _prepare_loop(100, label)
    assert 0 < searches < most


def test_nested_loops_with_two_branches_back_stay_contiguous() -> None:
    text = ""
    for k in range(3):
        first = f"L{k}: setp.eq.u32 %p1, %r2, {k}; @%p1 bra M{k}; add.u32 %r2, %r2, 1; bra L{k};"
        last = f"setp.eq.u32 %p2, %r2, {k}; @%p2 bra E{k}; add.u32 %r2, %r2, 1; bra L{k};"
        text = f"{first}\nM{k}: {text}{last}\nE{k}: "
    kernel = prepare_executable(parse(module(text, 0)), "snippet")
    loops = find_paths(kernel.entry.instructions, kernel.flow).dominators.loops
    assert len(loops) == 3
    for head, loop in loops.items():
        ranks = sorted(kernel.order.rank[block] for block in loop)
        assert ranks == [*range(kernel.order.rank[head], kernel.order.rank[head] + len(loop))]


def test_predicated_return_is_no_end() -> None:
    text = module("bra L;\nL: @%p1 ret;\nM: mov.u32 %r1, 0;\nbra N;\nN: bra O;\nO:", 0)
    kernel = prepare_executable(parse(text), "snippet")
    paths = find_paths(kernel.entry.instructions, kernel.flow)
    assert [paths.blocks[index][0].opcode for index in sorted(paths.ends) if paths.blocks[index]] == ["bra", "ret"]


def test_warps_yield_independently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are equal if each block runs alone. The blocks' threads leave in different iterations."""
    # Two loops behind one another take turns by age, which other warps change.
    launches = [launch for launch in LAUNCHES if launch.file == "yielding" and launch.name != "walk_twice"]
    depths = np.arange(1024) // 128 - np.arange(1024) % 3
    totals = []
    for chunk_threads in (1 << 16, 128):
        monkeypatch.setattr("ptxcount.engine.execute.CHUNK_THREADS", chunk_threads)
        for launch in launches:
            arguments = launch.copy_arguments()
            columns = arguments[1].reshape(12, 1024)
            columns[:8] = np.where(np.arange(8)[:, None] < depths, columns[:8] + 1, 0)
            totals.append(launch.run_on_cpu(arguments).totals())
    names = [launch.name for launch in launches]
    assert [
        name for name, one, many in zip(names, totals[: len(names)], totals[len(names) :], strict=True) if one != many
    ] == []


#: Rows of the zero that ends a lane's first search, and the masks of the lanes that left a search together on an H200
#: (kernel `repeat_do` of 2026-11-30), in their order.
ZERO_ROWS = [2, 2, 1, 3, 7, 2, 4, 2, 7, 4, 4, 6, 7, 5, 1, 3, 7, 5, 3, 3, 3, 5, 0, 0, 5, 3, 5, 6, 3, 4, 1, 4]
LEFT_TOGETHER = [
    0x00C00000, 0x40004004, 0x000000A3, 0x40004004, 0x121C8008, 0xA00006E3, 0x05222000,
    0x000000A3, 0x1A1C8808, 0x00011110, 0xA0C00640, 0x121C8008, 0x40004004, 0x05222000,
    0xA0000640, 0x08000800, 0x00011110, 0x00C00000, 0x05222000, 0x08000800, 0x00011110,
]  # fmt: skip


def test_threads_that_search_again_wait_again() -> None:
    """Each lane searches three times for a zero, from rows 0, 1 and 2; rows from 8 on have nothing but zeros."""
    code = (
        "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u32 %r1, 0;\n"
        "ROUND: mov.u32 %r2, %r1;\n"
        "SEARCH: mad.lo.u32 %r3, %r2, 32, %r0; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;\n"
        "atom.global.or.b32 %r4, [%rd3], 0; add.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r4, 0;\n@%p1 bra SEARCH;\n"
        "activemask.b32 %r5; mad.lo.u32 %r6, %r0, 3, %r1; mul.wide.u32 %rd4, %r6, 4; add.u64 %rd4, %rd2, %rd4;\n"
        "st.global.u32 [%rd4], %r5; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3;\n@%p2 bra ROUND;"
    )
    rows, masks = np.zeros((12, 32), np.uint32), np.zeros((32, 3), np.uint32)
    rows[:8] = 1
    rows[ZERO_ROWS, np.arange(32)] = 0
    execute_kernel(module(code, 2), "snippet", (1, 1, 1), (32, 1, 1), [rows.reshape(-1), masks.reshape(-1)])
    assert masks.tolist() == [[mask for mask in LEFT_TOGETHER if mask >> lane & 1] for lane in range(32)]
