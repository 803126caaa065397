"""CUDA sources of the tests, compiled to PTX: once, and kept beside the suite's own kernels."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kernelwatch.toolchain import cache, nvcc
from kernelwatch.toolchain.nvcc_call import NvccOutput
from ptxcount.nvcc import ARCH, compile_cuda

FOLDER = Path(__file__).parents[1] / "kernels"


@lru_cache
def ptx(name: str, flags: str = "", arch: str = ARCH) -> str:
    """The PTX of ``tests/kernels/<name>.cu``."""
    file = FOLDER / f"{name}.cu"
    key = cache.key(str(file), file.read_text(encoding="utf-8"), flags, arch, nvcc.version(nvcc.find_nvcc()))
    return cache.lookup(key, lambda: NvccOutput(compile_cuda(file, flags, arch).encode(), "")).data.decode()
