"""CUDA sources of the tests, compiled once to PTX."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.counters.foreign import compile_source
from benchmarks.instruments.ptx.parser import parse

FOLDER = Path(__file__).parent / "kernels"


@lru_cache
def ptx(name: str) -> str:
    """The PTX of ``tests/kernels/<name>.cu``."""
    source = FOLDER / f"{name}.cu"
    first = source.read_text(encoding="utf-8").split("__global__ void ", 1)[1].split("(", 1)[0]
    return compile_source(source, first, "", "sm_90").ptx


@lru_cache
def entries(name: str) -> tuple[str, ...]:
    """The kernels of ``tests/kernels/<name>.cu``."""
    return tuple(parse(ptx(name)).entries)
