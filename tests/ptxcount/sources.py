"""CUDA sources of the tests, compiled once to PTX."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ptxcount.nvcc import compile_cuda

FOLDER = Path(__file__).parents[1] / "kernels"


@lru_cache
def ptx(name: str, flags: str = "") -> str:
    """The PTX of ``tests/kernels/<name>.cu``."""
    return compile_cuda(FOLDER / f"{name}.cu", flags)
