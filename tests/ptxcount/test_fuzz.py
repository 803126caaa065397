"""Random kernels give the same bits in the executor as when g++ compiles them for the host."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.ptxcount.fuzz import ways

SEEDS = list(range(100, 140))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to compile the kernels for the host")
def test_random_kernels(tmp_path: Path) -> None:
    """Forty kernels, every array, bit for bit."""
    ptx, host = ways.compile_ptx(SEEDS, tmp_path), ways.Host(SEEDS, tmp_path)
    wrong = {seed: found for seed in SEEDS if (found := ways.differences(ways.executor(ptx, seed), host(seed)))}
    assert not wrong
