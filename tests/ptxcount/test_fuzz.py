"""Random kernels: outputs as of the same code compiled by g++ for the host, counts as of the oracle in `by_sets`."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument
from tests.ptxcount import by_sets
from tests.ptxcount.fuzz import grammar, ways

#: 22 kernels with 152 kinds of instructions; of the seeds up to 400, no 22 others in a row have more.
SEEDS = list(range(290, 312))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to compile the kernels for the host")
def test_random_kernels_as_on_the_host(tmp_path: Path) -> None:
    ptx, host = ways.compile_ptx(SEEDS, tmp_path), ways.Host(SEEDS, tmp_path)
    wrong = {seed: ways.differences(ways.executor(ptx, seed), host(seed)) for seed in SEEDS}
    assert not any(wrong.values()), wrong


def test_random_kernels_count_as_the_set_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxcount.machine.chunk.Access", by_sets.Watched)
    ptx = ways.compile_ptx(SEEDS, tmp_path)
    wrong = {}
    for seed in SEEDS:
        by_sets.COUNTS_BY_ACCESS.clear()
        block = (1 + seed * 37 % 96, 1, 1)  # one to three warps, most not full
        arguments: list[Argument] = [*ways.memory(seed).arrays(), np.int32(ways.STORES)]
        counters = execute_kernel(ptx, grammar.name(seed), (2, 1, 1), block, arguments, races="off", unwritten="off")
        wrong[seed] = by_sets.differences(counters.accesses)
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize(("blocks", "step"), [(3, 1), (20, 3)])  # each kernel, or each third one in more blocks
def test_shortcuts_change_nothing(blocks: int, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run is without those of `ways.without_shortcuts`. 51 threads leave a warp that is not full."""
    seeds, runs = SEEDS[::step], []
    ptx = ways.compile_ptx(SEEDS, tmp_path)
    for _ in range(2):
        memories = [ways.memory(seed) for seed in seeds]
        counters = []
        for seed, memory in zip(seeds, memories, strict=True):
            grid, block, storing_threads = (blocks, 1, 1), (51 if seed % 2 else 64, 1, 1), 87 - seed % 40
            arguments: list[Argument] = [*memory.arrays(), np.int32(storing_threads)]
            options: dict[str, Any] = {"races": "off", "unwritten": "off", "distinct": True}
            counters.append(execute_kernel(ptx, grammar.name(seed), grid, block, arguments, **options))
        runs.append((counters, [array.tobytes() for memory in memories for array in memory.arrays()]))
        ways.without_shortcuts(monkeypatch)
    assert runs[0] == runs[1]
