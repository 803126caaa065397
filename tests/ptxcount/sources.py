"""CUDA sources of the tests, compiled to PTX once per process."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import KernelArgument
from ptxcount.source import cuda_compiler
from ptxcount.source.cuda_compiler import ARCH

FOLDER = Path(__file__).parents[1] / "kernels"


def compile_to_ptx(source: Path | str, flags: str = "", arch: str = ARCH) -> str:
    return cuda_compiler.compile_source(source, flags, arch).ptx


@lru_cache
def ptx(name: str, flags: str = "", arch: str = ARCH) -> str:
    """Compile ``tests/kernels/<name>.cu`` to PTX."""
    return compile_to_ptx(FOLDER / f"{name}.cu", flags, arch)


def execute(
    name: str, entry: str, arguments: Sequence[KernelArgument], *, threads: int = 32, blocks: int = 1, **options: Any
) -> LaunchCounters:
    """Execute a kernel of ``tests/kernels/<name>.cu`` in one row of blocks."""
    return execute_kernel(ptx(name), entry, (blocks, 1, 1), (threads, 1, 1), arguments, **options)
