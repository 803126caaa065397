"""The executor's counters against Nsight Compute, and random kernels against the chip."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import fuzz_gpu, ncu_compare

pytestmark = pytest.mark.gpu


def test_counters_agree_with_nsight_compute(tmp_path: Path) -> None:
    """Every kernel and dtype at awkward shapes."""
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not on PATH; it comes with the CUDA toolkit")
    out = tmp_path / "table.md"
    code = ncu_compare.main(["--out", str(out)])
    assert code == 0, out.read_text(encoding="utf-8") if out.exists() else "no table"


def test_random_kernels_agree_with_the_chip() -> None:
    """Fifty of them; ``python -m tests.fuzz_gpu`` runs more."""
    assert fuzz_gpu.main(["--programs", "50", "--seed", "3"]) == 0
