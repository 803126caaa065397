"""Running a kernel once on the device, on random input and poisoned output between guards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwatch.instrument import inputs, verification
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.verification import Near
from kernelwatch.kernel import Row, loading

#: Bytes before and behind the output that must stay as they are.
GUARD = 16384


def run_and_check(kernel: Row, dtype: str, flag_set: str, **arguments: Any) -> None:
    """Launch a kernel and compare all it wrote with NumPy's reference, the guards with poison, the inputs with before.

    Raises
    ------
    WrongOutputError
        The output, a guard or an input differs.
    """
    import pycuda.driver as cuda

    function = loading.load(kernel, dtype, flag_set)
    output_shape, *input_shapes = kernel.arrays(**arguments)
    sources = [_held(kernel, shape, dtype, place) for place, shape in enumerate(input_shapes)]
    itemsize = np.dtype(dtype).itemsize
    memory = np.full(GUARD * 2 + math.prod(output_shape) * itemsize, POISON, np.uint8)
    before = memory[GUARD:-GUARD].view(dtype).reshape(output_shape)
    ulp = kernel.operation.ulp.get(dtype)
    near = None if ulp is None else Near(dtype, ulp)
    given = [each if near is None else each.astype(np.float64) for each in (before.copy(), *sources)]
    expected = kernel.operation.reference(*given, **arguments)
    device_inputs, device_output = [cuda.to_device(source) for source in sources], cuda.to_device(memory)
    function(int(device_output) + GUARD, *device_inputs, **arguments)
    found = cuda.from_device(device_output, memory.shape, np.uint8)
    for place, (held, source) in enumerate(zip(device_inputs, sources, strict=True)):
        if cuda.from_device(held, source.shape, source.dtype).tobytes() != source.tobytes():
            raise verification.WrongOutputError(f"{kernel.name}: wrote to input {place}")
    if not (found[:GUARD] == POISON).all():
        raise verification.WrongOutputError(f"{kernel.name}: wrote before the beginning of its output")
    check_host(kernel.name, expected, found[GUARD:], near)


def check_host(name: str, expected: NDArray[Any], found: NDArray[np.uint8], near: Near | None = None) -> None:
    """Compare the bytes `found`, the output and then a guard, with `expected`."""

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = found[start : start + len(into)]

    if near is not None:
        verification.check_near(name, expected, GUARD, read, near)
        return
    bits = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    for byte in np.flatnonzero(bits != found[: len(bits)])[:1]:
        at, size = byte // expected.itemsize * expected.itemsize, expected.itemsize
        where = [int(axis) for axis in np.unravel_index(byte // size, expected.shape)]
        values = (each[at : at + size].tobytes() for each in (found, bits))
        raise verification.WrongOutputError(verification.differs(name, where, *values))
    verification.check_guard(name, len(bits), GUARD, read)


def _held(kernel: Row, shape: tuple[int, ...], dtype: str, place: int) -> NDArray[Any]:
    """An input: random bits where they are moved, exact values where it computes."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    if kernel.operation.computes:
        return inputs.counted(shape, dtype, place, is_exact=True)
    return np.frombuffer(np.random.default_rng(count + place).bytes(count), np.uint8).view(dtype).reshape(shape)
