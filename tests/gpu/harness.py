"""Run one launch on the device, with poisoned and guarded outputs, and memory of its own for every array.

`python -m tests.gpu.harness LAUNCH ...` runs launches for compute-sanitizer.
"""

from __future__ import annotations

import atexit
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwatch.instrument import inputs, tolerance
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.tolerance import UlpTolerance
from kernelwatch.kernel import Launch, load_function
from kernelwatch.kernel.arguments import ArrayArgument, insert_addresses, pack_arguments
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.suite import registry

#: Number of bytes before, and of bytes behind, an output that must not change.
GUARD = 16384


def run_and_check(kernel: Kernel, dtype: str, flags: str, **arguments: Any) -> None:
    """Launch a kernel.

    Compare outputs with NumPy's reference, guards with poison, and inputs with the inputs before the launch.

    Raises
    ------
    WrongOutputError
        An output, a guard or an input differs.
    """
    import pycuda.driver as cuda

    arch, bound = load_function.current_arch(), kernel.bind_arguments(dtype, **arguments)
    named = [argument for argument in bound if isinstance(argument, ArrayArgument)]
    contents = {argument.name: inputs.make_content(argument) for argument in named}
    has_tolerance = any(argument.ulp is not None for argument in named)
    expected = iter(
        kernel.compute_expected(
            {name: array.copy() for name, array in contents.items()}, arguments, as_float64=has_tolerance
        )
    )
    allocations = {argument.name: cuda.to_device(_add_guards(contents[argument.name], argument)) for argument in named}
    shape = kernel.compute_geometry(
        dtype, load_function.current_context().get_device().multiprocessor_count, **arguments
    )
    packed, places = pack_arguments(bound, kernel.parameter_layout(dtype, flags, arch=arch))
    addresses = [int(allocations[argument.name]) + GUARD * argument.is_written for argument in named]
    function = _function(kernel, dtype, flags, len(packed), shape.dynamic_shared)
    function._launch_kernel(
        shape.grid, shape.block, insert_addresses(packed, places, addresses), shape.dynamic_shared, None
    )
    for argument in named:
        source = _add_guards(contents[argument.name], argument)
        actual = cuda.from_device(allocations[argument.name], source.shape, np.uint8)
        if not argument.is_written and actual.tobytes() != source.tobytes():
            raise tolerance.WrongOutputError(f"{kernel.name}: wrote to {argument.name}")
        if argument.is_written and not (actual[:GUARD] == POISON).all():
            raise tolerance.WrongOutputError(f"{kernel.name}: wrote before the beginning of its output")
        if argument.is_written:
            near = None if argument.ulp is None else UlpTolerance(argument.dtype.name, argument.ulp)
            check_host(kernel.name, next(expected), argument.dtype, actual[GUARD:], near)


@cache
def _function(kernel: Kernel, dtype: str, flags: str, length: int, shared: int) -> Any:
    import pycuda.driver as cuda

    cubin = kernel.compile_cubin(dtype, flags, arch=load_function.current_arch())
    atexit.register(_function.cache_clear)  # modules before their context
    return load_function.prepare_function(cuda, cubin.data, cubin.entry, f"{length}s", shared)


def _add_guards(content: NDArray[Any], argument: ArrayArgument) -> NDArray[np.uint8]:
    content_bytes = content.reshape(-1).view(np.uint8)
    return np.pad(content_bytes, GUARD, constant_values=POISON) if argument.is_written else content_bytes


def check_host(
    name: str, expected: NDArray[Any], dtype: np.dtype[Any], actual: NDArray[np.uint8], near: UlpTolerance | None
) -> None:
    """Compare the bytes of an output with `expected`, and the guard behind the output with poison.

    Raises
    ------
    WrongOutputError
        The bytes differ, or the elements differ by more than `near` allows.
    """

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = actual[start : start + len(into)]

    if near is not None:
        tolerance.check_within_tolerance(name, expected, GUARD, read, near)
        return
    bits, size = np.ascontiguousarray(expected, dtype).reshape(-1).view(np.uint8), dtype.itemsize
    for byte in np.flatnonzero(bits != actual[: len(bits)])[:1]:
        element_start = byte // size * size
        where = [int(axis) for axis in np.unravel_index(byte // size, expected.shape)]
        values = (array[element_start : element_start + size].tobytes() for array in (actual, bits))
        raise tolerance.WrongOutputError(tolerance.format_difference(name, where, *values))
    tolerance.check_guard(name, len(bits), GUARD, read)


def main() -> None:
    for text in sys.argv[1:]:
        launch = Launch.parse(text)
        run_and_check(registry.find_kernel(launch.kernel), launch.dtype, launch.flags, **launch.arguments)
    print(f"{len(sys.argv) - 1} launches")


if __name__ == "__main__":
    main()
