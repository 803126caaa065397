"""The four kernels for numba-cuda and numba-cuda-mlir."""

from __future__ import annotations

from typing import Any

from ..problems import THREADS, Launch, N, Problem


def make_launch_with(cuda: Any, problem: Problem) -> Launch:
    """Make the launch of a problem. ``cuda`` is the module of numba-cuda or numba-cuda-mlir with ``jit``."""

    def copy(source: Any, output: Any) -> None:
        i = cuda.grid(1)
        if i < source.size:
            output[i] = source[i]

    def transpose(source: Any, output: Any) -> None:
        column, row = cuda.grid(2)
        output[column, row] = source[row, column]

    def reduction(source: Any, output: Any) -> None:
        row = cuda.grid(1)
        total = source[row, 0]
        for column in range(1, source.shape[1]):
            total += source[row, column]
        output[row] = total

    def product(left: Any, right: Any, output: Any) -> None:
        column, row = cuda.grid(2)
        total = output[row, column]
        for inner in range(left.shape[1]):
            total += left[row, inner] * right[inner, column]
        output[row, column] = total

    kernels = {
        "copy": (copy, N * N // THREADS, THREADS),
        "transpose": (transpose, (2, N // 4), (32, 4)),
        "reduction": (reduction, 1, N),
        "product": (product, (2, N // 4), (32, 4)),
    }
    kernel, grid, block = kernels[problem.name]
    return Launch(cuda.jit(kernel), grid, block, [*problem.inputs, problem.output])
