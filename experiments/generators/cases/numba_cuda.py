"""The four kernels in Numba."""

from __future__ import annotations

import numba_cuda
from numba import cuda

from ..problems import Launch, Problem
from .numba_kernels import make_launch_with

VERSION = f"numba-cuda {numba_cuda.__version__}"


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    return make_launch_with(cuda, problem)
