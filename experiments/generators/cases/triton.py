"""The four kernels in Triton."""

from __future__ import annotations

import triton
import triton.language as tl

from ..problems import Launch, N, Problem

VERSION = f"Triton {triton.__version__}"


@triton.jit
def copy(source, output, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(output + offset, tl.load(source + offset, mask=offset < n), mask=offset < n)


@triton.jit
def transpose(source, output, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(source + row[:, None] * n + column[None, :])
    tl.store(output + column[:, None] * n + row[None, :], tl.trans(tile))


@triton.jit
def reduction(source, output, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(output + row, tl.sum(tl.load(source + row * n + tl.arange(0, BLOCK)), 0))


@triton.jit
def product(left, right, output, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, BLOCK):
        a = tl.load(left + row[:, None] * n + (first + inner)[None, :])
        b = tl.load(right + (first + inner)[:, None] * n + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(output + row[:, None] * n + column[None, :], total)


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    kernel, grid, length, block = {
        "copy": (copy, 4, N * N, 1024),
        "transpose": (transpose, (2, 2), N, 32),
        "reduction": (reduction, N, N, N),
        "product": (product, (1, 1), N, N),
    }[problem.name]
    return Launch(kernel, grid, None, [*problem.inputs, problem.output, length, block])
