"""CUDA sources of the tests, compiled to PTX once per process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ptxcount.source import cuda_compiler
from ptxcount.source.cuda_compiler import ARCH

FOLDER = Path(__file__).parents[1] / "kernels"


def compile_to_ptx(source: Path | str, flags: str = "", arch: str = ARCH) -> str:
    """Compile a file or a text to PTX."""
    return cuda_compiler.compile_source(source, flags, arch).ptx


@lru_cache
def ptx(name: str, flags: str = "", arch: str = ARCH) -> str:
    """Compile ``tests/kernels/<name>.cu`` to PTX."""
    return compile_to_ptx(FOLDER / f"{name}.cu", flags, arch)
