"""The four kernels in numba-cuda-mlir."""

from __future__ import annotations

from importlib.metadata import version

from numba_cuda_mlir import cuda

from ..problems import Launch, Problem
from .numba_kernels import make_launch_with

VERSION = f"numba-cuda-mlir {version('numba-cuda-mlir')}"


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    return make_launch_with(cuda, problem)
