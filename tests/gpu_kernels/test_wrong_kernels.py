"""The benchmarks' verification against kernels that are wrong on purpose, executed on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpu_kernels.catalog import KERNELS
from kernelwatch.counting import transactions
from kernelwatch.instrument import inputs
from kernelwatch.instrument.poison import POISON, poisoned
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.kernel import Kernel
from ptxcount.errors import OutOfBoundsError, ReadOnlyError
from ptxcount.execute import run
from tests.gpu.harness import GUARD, check_host
from tests.wrong_kernels import WRITING, WRONG

#: The models of the wrong kernels, which the verification must let pass.
RIGHT = [
    (KERNELS[name], next(arguments for wrong, arguments, _ in WRONG if wrong.operation is KERNELS[name].operation), "")
    for name in ("offset_copy", "transpose_read_coalesced", "add_uncoalesced", "matmul_tiled", "matmul_corner_turning")
]


def execute_and_check(kernel: Kernel, arguments: dict[str, int], slack: int = GUARD) -> None:
    """Execute a kernel on float32 with `slack` bytes behind all arrays, and verify what it wrote."""
    output_shape, *input_shapes = kernel.arrays(**arguments)
    block = inputs.block("float32" if kernel.operation.computes else None)
    memories, sources = [], []
    for place, shape in enumerate(input_shapes):
        size = math.prod(shape) * 4
        memories.append(inputs.repeated(block, inputs.start(place), size + slack).copy())
        sources.append(memories[-1][:size].view(np.float32).reshape(shape))
    found = np.full(math.prod(output_shape) * 4 + slack, POISON, np.uint8)
    expected = kernel.operation.reference(poisoned(output_shape, np.float32), *sources, **arguments)
    geometry = kernel.geometry(**arguments)
    scalars = [np.int64(arguments[name]) for name in kernel.parameters]
    ptx = kernel.ptx("float32", arch="sm_90")
    run(ptx, kernel.name, geometry.grid, geometry.block, [found, *memories, *scalars], races="error")
    check_host(kernel.name, expected, found)


@pytest.mark.parametrize(("kernel", "arguments", "message"), WRONG, ids=lambda value: getattr(value, "name", ""))
def test_wrong_kernels_are_rejected(kernel: Kernel, arguments: dict[str, int], message: str) -> None:
    """Each wrong kernel is rejected, by its name and for its fault."""
    with pytest.raises(WrongOutputError, match=message):
        execute_and_check(kernel, arguments)


@pytest.mark.parametrize(("kernel", "arguments", "_"), RIGHT, ids=lambda value: getattr(value, "name", ""))
def test_their_models_pass(kernel: Kernel, arguments: dict[str, int], _: str) -> None:
    """The verification lets the right kernels pass."""
    execute_and_check(kernel, arguments)


@pytest.mark.parametrize(("kernel", "arguments", "_"), WRITING, ids=lambda value: getattr(value, "name", ""))
def test_kernels_that_write_to_an_input_are_not_counted(kernel: Kernel, arguments: dict[str, int], _: str) -> None:
    """The executor names the line and the argument: the last one before the numbers."""
    written = rf"kernel\.cu:\d+ .* write to a read-only array by .* of argument {kernel.operation.inputs} of"
    with pytest.raises(ReadOnlyError, match=written):
        transactions.count(kernel, "float32", **arguments)


def test_the_executor_itself_names_the_missing_check() -> None:
    """Without slack behind the arrays, the access itself is reported, at its line."""
    kernel, arguments, _ = WRONG[2]
    with pytest.raises(OutOfBoundsError, match=r"kernel\.cu:\d+ .* access out of bounds by block \(2, 1, 0\), thread"):
        execute_and_check(kernel, arguments, slack=0)
