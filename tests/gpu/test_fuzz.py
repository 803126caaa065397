"""Random kernels: equal bits in the executor and on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwatch.kernel import load_function
from tests.ptxcount.fuzz import ways

pytestmark = pytest.mark.gpu

SEEDS = list(range(3_000_000, 3_000_050))


def test_random_kernels_give_equal_bits(tmp_path: Path) -> None:
    load_function.current_context()
    ptx = ways.compile_ptx(SEEDS, tmp_path)
    chip = ways.Gpu(ptx)
    wrong = {
        seed: difference for seed in SEEDS if (difference := ways.differences(ways.executor(ptx, seed), chip(seed)))
    }
    assert not wrong
