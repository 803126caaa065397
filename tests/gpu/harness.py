"""Running a kernel once on the device: each array in memory of its own, outputs poisoned and between guards.

`python -m tests.gpu.harness LAUNCH ...` does that with some launches, for compute-sanitizer.
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

#: Bytes before and behind an output that must stay as they are.
GUARD = 16384


def run_and_check(kernel: Kernel, dtype: str, flags: str, **arguments: Any) -> None:
    """Launch a kernel and compare all it wrote with NumPy's reference, the guards with poison, the inputs with before.

    Raises
    ------
    WrongOutputError
        An output, a guard or an input differs.
    """
    import pycuda.driver as cuda

    arch, bound = load_function.current_arch(), kernel.bind_arguments(dtype, **arguments)
    named = [each for each in bound if isinstance(each, ArrayArgument)]
    before = {each.name: inputs.make_content(each) for each in named}
    is_near = any(each.ulp is not None for each in named)
    expected = iter(
        kernel.compute_expected({name: each.copy() for name, each in before.items()}, arguments, is_near=is_near)
    )
    held = {each.name: cuda.to_device(_guarded(before[each.name], each)) for each in named}
    shape = kernel.compute_geometry(
        dtype, load_function.current_context().get_device().multiprocessor_count, **arguments
    )
    packed, places = pack_arguments(bound, kernel.parameter_layout(dtype, flags, arch=arch))
    addresses = [int(held[each.name]) + GUARD * each.is_written for each in named]
    function = _function(kernel, dtype, flags, len(packed), shape.dynamic_shared)
    function._launch_kernel(
        shape.grid, shape.block, insert_addresses(packed, places, addresses), shape.dynamic_shared, None
    )
    for each in named:
        source = _guarded(before[each.name], each)
        found = cuda.from_device(held[each.name], source.shape, np.uint8)
        if not each.is_written and found.tobytes() != source.tobytes():
            raise tolerance.WrongOutputError(f"{kernel.name}: wrote to {each.name}")
        if each.is_written and not (found[:GUARD] == POISON).all():
            raise tolerance.WrongOutputError(f"{kernel.name}: wrote before the beginning of its output")
        if each.is_written:
            near = None if each.ulp is None else UlpTolerance(each.dtype.name, each.ulp)
            check_host(kernel.name, next(expected), each.dtype, found[GUARD:], near)


@cache
def _function(kernel: Kernel, dtype: str, flags: str, length: int, shared: int) -> Any:
    import pycuda.driver as cuda

    cubin = kernel.compile_cubin(dtype, flags, arch=load_function.current_arch())
    atexit.register(_function.cache_clear)  # modules go before their context
    return load_function.prepare_function(cuda, cubin.data, cubin.entry, f"{length}s", shared)


def _guarded(content: NDArray[Any], one: ArrayArgument) -> NDArray[np.uint8]:
    """Return an array's bytes, with those of the guards if it is written."""
    held = content.reshape(-1).view(np.uint8)
    return np.pad(held, GUARD, constant_values=POISON) if one.is_written else held


def check_host(
    name: str, expected: NDArray[Any], dtype: np.dtype[Any], found: NDArray[np.uint8], near: UlpTolerance | None
) -> None:
    """Compare the bytes `found`, the output and then a guard, with `expected`."""

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = found[start : start + len(into)]

    if near is not None:
        tolerance.check_within_tolerance(name, expected, GUARD, read, near)
        return
    bits, size = np.ascontiguousarray(expected, dtype).reshape(-1).view(np.uint8), dtype.itemsize
    for byte in np.flatnonzero(bits != found[: len(bits)])[:1]:
        at = byte // size * size
        where = [int(axis) for axis in np.unravel_index(byte // size, expected.shape)]
        values = (each[at : at + size].tobytes() for each in (found, bits))
        raise tolerance.WrongOutputError(tolerance.format_difference(name, where, *values))
    tolerance.check_guard(name, len(bits), GUARD, read)


def main() -> None:
    """Run the launches, and say how many."""
    for text in sys.argv[1:]:
        launch = Launch.parse(text)
        run_and_check(registry.find_kernel(launch.kernel), launch.dtype, launch.flags, **launch.arguments)
    print(f"{len(sys.argv) - 1} launches")


if __name__ == "__main__":
    main()
