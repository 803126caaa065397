"""The four kernels in cuTile."""

from __future__ import annotations

from importlib.metadata import version

import cuda.tile as ct

from ptxcount import TensorMap

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
    maps = make_maps(problem) if arch != "sm_80" else []
    if arch == "sm_120" and problem.name == "product":
        maps[-1] = TensorMap(problem.output, (N // 2, 32), 128)
    return Launch(kernel, grid, None, [*problem.inputs, problem.output, size, *maps])


def make_maps(problem: Problem) -> list[TensorMap]:
    """Make the tensor maps of a launch, with the boxes and swizzles that the kernels' PTX expects."""
    if problem.name == "reduction":
        return [TensorMap(problem.inputs[0], (1, N))]
    arrays = [*problem.inputs, problem.output] if problem.name == "product" else []
    return [TensorMap(array, (N, 128 // array.itemsize), 128) for array in arrays]
