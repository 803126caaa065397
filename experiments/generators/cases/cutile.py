"""The four kernels in cuTile."""

from __future__ import annotations

from importlib.metadata import version

import cuda.tile as ct

from ..problems import Launch, N, Problem

VERSION = f"cuTile {version('cuda-tile')}"


@ct.kernel
def copy(source, output, size: ct.Constant[int]):
    block = ct.bid(0)
    ct.store(output, index=(block,), tile=ct.load(source, index=(block,), shape=(size,)))


@ct.kernel
def transpose(source, output, size: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    tile = ct.load(source, index=(row, column), shape=(size, size))
    ct.store(output, index=(column, row), tile=ct.transpose(tile))


@ct.kernel
def reduction(source, output, size: ct.Constant[int]):
    row = ct.bid(0)
    ct.store(output, index=(row,), tile=ct.sum(ct.load(source, index=(row, 0), shape=(1, size)), axis=1))


@ct.kernel
def product(left, right, output, size: ct.Constant[int]):
    total = ct.full((size, size), 0.0, ct.float32)
    a = ct.load(left, index=(0, 0), shape=(size, size))
    b = ct.load(right, index=(0, 0), shape=(size, size))
    ct.store(output, index=(0, 0), tile=ct.mma(a, b, total))


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    kernel, grid, size = {
        "copy": (copy, 4, 1024),
        "transpose": (transpose, (2, 2), 32),
        "reduction": (reduction, N, N),
        "product": (product, 1, N),
    }[problem.name]
    return Launch(kernel, grid, None, [*problem.inputs, problem.output, size])
