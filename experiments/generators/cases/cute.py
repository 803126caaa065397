"""The four kernels in CuTe DSL."""

from __future__ import annotations

import tempfile
from importlib.metadata import version

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

from ..problems import THREADS, Launch, N, Problem

VERSION = f"CuTe DSL {version('nvidia-cutlass-dsl')}"


@cute.kernel
def copy(source: cute.Tensor, output: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    output[i] = source[i]


@cute.kernel
def transpose(source: cute.Tensor, output: cute.Tensor):
    column, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    output[column, row] = source[row, column]


@cute.kernel
def reduction(source: cute.Tensor, output: cute.Tensor):
    row, _, _ = cute.arch.thread_idx()
    total = cutlass.Float32(0)
    for column in range(N):
        total += source[row, column]
    output[row] = total


@cute.kernel
def product(left: cute.Tensor, right: cute.Tensor, output: cute.Tensor):
    column, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0)
    for inner in range(N):
        total += cutlass.Float32(left[row, inner]) * cutlass.Float32(right[inner, column])
    output[row, column] = total


@cute.jit
def launch_copy(source: cute.Tensor, output: cute.Tensor):
    copy(source, output).launch(grid=(N * N // THREADS, 1, 1), block=(THREADS, 1, 1))


@cute.jit
def launch_transpose(source: cute.Tensor, output: cute.Tensor):
    transpose(source, output).launch(grid=(N, 1, 1), block=(N, 1, 1))


@cute.jit
def launch_reduction(source: cute.Tensor, output: cute.Tensor):
    reduction(source, output).launch(grid=(1, 1, 1), block=(N, 1, 1))


@cute.jit
def launch_product(left: cute.Tensor, right: cute.Tensor, output: cute.Tensor):
    product(left, right, output).launch(grid=(N, 1, 1), block=(N, 1, 1))


FUNCTIONS = {
    "copy": (launch_copy, N * N // THREADS),
    "transpose": (launch_transpose, N),
    "reduction": (launch_reduction, 1),
    "product": (launch_product, N),
}


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem. The layouts of its tensors are dynamic."""
    function, grid = FUNCTIONS[problem.name]
    arrays = [*problem.inputs, problem.output]
    tensors = [from_dlpack(array).mark_layout_dynamic(array.ndim - 1) for array in arrays]
    compiled = cute.compile(
        function,
        *tensors,
        options=f"--gpu-arch {arch} --keep-ptx --generate-line-info --dump-dir={tempfile.gettempdir()}",
    )
    return Launch(compiled, grid, None, arrays)
