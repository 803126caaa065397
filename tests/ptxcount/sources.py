"""CUDA sources of the tests, compiled to PTX: once in each process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ptxcount.nvcc import ARCH, compile_cuda

FOLDER = Path(__file__).parents[1] / "kernels"


@lru_cache
def ptx(name: str, flags: str = "", arch: str = ARCH) -> str:
    """The PTX of ``tests/kernels/<name>.cu``."""
    return compile_cuda(FOLDER / f"{name}.cu", flags, arch)
