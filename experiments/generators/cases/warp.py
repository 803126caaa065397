"""The four kernels in Warp."""

from __future__ import annotations

import warp as wp

from ..problems import THREADS, Launch, N, Problem

VERSION = f"Warp {wp.__version__}"


@wp.kernel
def copy(source: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = source[i]


@wp.kernel
def transpose(source: wp.array2d(dtype=float), output: wp.array2d(dtype=float)):
    row, column = wp.tid()
    output[column, row] = source[row, column]


@wp.kernel
def reduction(source: wp.array2d(dtype=float), output: wp.array(dtype=float)):
    row = wp.tid()
    total = float(0.0)
    for column in range(source.shape[1]):
        total += source[row, column]
    output[row] = total


@wp.kernel
def product(
    left: wp.array2d(dtype=float),
    right: wp.array2d(dtype=float),
    output: wp.array2d(dtype=float),
):
    row, column = wp.tid()
    total = float(0.0)
    for inner in range(left.shape[1]):
        total += left[row, inner] * right[inner, column]
    output[row, column] = total


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem; the grid is the launch's ``dim``."""
    kernel, dim = {
        "copy": (copy, N * N),
        "transpose": (transpose, (N, N)),
        "reduction": (reduction, N),
        "product": (product, (N, N)),
    }[problem.name]
    return Launch(kernel, dim, THREADS, [*problem.inputs, problem.output])
