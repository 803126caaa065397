"""The four problems that a kernel solves, with their inputs and expected outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Rows and columns of the matrices.
N = 64
#: Threads of a block, for kernels that can choose them.
THREADS = 128


@dataclass
class Problem:
    """Inputs of a kernel, the output array that it fills, and the expected output (`reference`)."""

    name: str
    inputs: list[Any]
    output: Any
    reference: Any

    def is_solved(self) -> bool:
        """Tell if the output equals the reference, up to rounding errors of sums in another order."""
        return bool(np.allclose(self.output, self.reference, rtol=2e-3, atol=2e-3))


@dataclass
class Launch:
    """The arguments of `ptxcount.count` for a launch."""

    kernel: Any
    grid: int | Sequence[int]
    block: int | Sequence[int] | None
    arguments: Any
    entry: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def make_problem(name: str, dtype: str = "float32") -> Problem:
    """Make the problem with this name from `NAMES`. `dtype` is that of the factors of a product."""
    random = np.random.default_rng(0)
    matrix = random.normal(size=(N, N)).astype(np.float32)
    if name == "copy":
        return Problem(name, [matrix.reshape(-1)], np.zeros(N * N, np.float32), matrix.reshape(-1))
    if name == "transpose":
        return Problem(name, [matrix], np.zeros((N, N), np.float32), matrix.T)
    if name == "reduction":
        return Problem(name, [matrix], np.zeros(N, np.float32), matrix.sum(1))
    left, right = matrix.astype(dtype), random.normal(size=(N, N)).astype(dtype)
    reference = left.astype(np.float32) @ right.astype(np.float32)
    return Problem(name, [left, right], np.zeros((N, N), np.float32), reference)


NAMES = ("copy", "transpose", "reduction", "product")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
