"""Running a kernel once on the device, on random input and poisoned output between guards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instruments import verification
from benchmarks.instruments.poison import POISON
from gpu_kernels import dtypes, launch
from gpu_kernels.spec import Kernel

#: Bytes before and behind the output that must stay as they are.
GUARD = 16384


def run_and_check(kernel: Kernel, dtype: str, flag_set: str, **arguments: int) -> None:
    """Launch a kernel and compare all it wrote with NumPy's reference, and the guards with poison.

    Raises
    ------
    WrongOutputError : the output or a guard differs.
    """
    import pycuda.driver as cuda

    function = launch.load(kernel, dtype, flag_set)
    output_shape, input_shape = kernel.arrays(**arguments)
    source = _random(input_shape, dtype)
    before = np.full(GUARD * 2 + int(np.prod(output_shape)) * source.itemsize, POISON, np.uint8)
    expected = kernel.reference(before[GUARD:-GUARD].view(dtype).reshape(output_shape), source, **arguments)
    device_input, device_output = cuda.to_device(source), cuda.to_device(before)
    function(int(device_output) + GUARD, device_input, **arguments)
    found = cuda.from_device(device_output, before.shape, np.uint8)
    if not (found[:GUARD] == POISON).all():
        raise verification.WrongOutputError(f"{kernel.name}: wrote before the beginning of its output")
    check_host(kernel.name, expected, found[GUARD:])


def check_host(name: str, expected: NDArray[Any], found: NDArray[np.uint8]) -> None:
    """Compare the bytes `found` (the output, then a guard) with `expected`, by the benchmarks' own verification."""

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = found[start : start + len(into)]

    length = verification.buffer_bytes(expected.shape, expected.itemsize, GUARD)
    verification.check_output(name, expected, GUARD, read, np.empty(length, np.uint8))


def _random(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    count = int(np.prod(shape)) * dtypes.get(dtype).itemsize
    return np.frombuffer(np.random.default_rng(count).bytes(count), np.uint8).view(dtype).reshape(shape)
