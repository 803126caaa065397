"""Executes kernels of anybody's on the CPU: their arrays are made, verified and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError
from kernelwatch.instrument import inputs
from kernelwatch.instrument.verification import Near
from kernelwatch.kernel import own
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.operation import Array
from kernelwatch.kernel.parameters import ArrayArgument, Direction
from ptxcount import host_memory
from ptxcount.counters import LaunchCounters
from ptxcount.execute import run


@dataclass(frozen=True)
class CountedKernel:
    """The counters of a launch, its geometry, its arrays afterwards by name, and the first that is wrong."""

    counters: LaunchCounters
    geometry: Geometry
    arrays: Mapping[str, Array]
    said: str | None
    is_verified: bool

    def problem(self) -> str | None:
        """Return the first element that is not what the reference expects; None if all are, or nothing is expected."""
        return self.said


def count(kernel: own.Kernel, dtype: DTypeLike, flags: str, arch: str, extents: Mapping[str, Any]) -> CountedKernel:
    """Compile a kernel, execute it for its whole grid, verify and count. Errors as `transactions.count`."""
    bound = kernel.bound(dtype, **extents)
    named = [each for each in bound if isinstance(each, ArrayArgument)]
    host_memory.require(3 * sum(each.nbytes for each in named))
    before = {each.name: inputs.content(each) for each in named}
    arrays = {name: array.copy() for name, array in before.items()}
    counters = _run(kernel, dtype, flags, arch, extents, arrays)
    said = None
    if kernel.is_verified:
        said = _problem(named, arrays, before, _expected(kernel, dtype, flags, arch, extents, before, named))
    return CountedKernel(counters, kernel.geometry(dtype, **extents), arrays, said, kernel.is_verified)


def _run(
    kernel: own.Kernel, dtype: DTypeLike, flags: str, arch: str, extents: Mapping[str, Any], arrays: Mapping[str, Array]
) -> LaunchCounters:
    """Execute a kernel on arrays; those that it must not write to are read-only."""
    module, bound = kernel.module(dtype, flags, arch=arch, lines=True), kernel.bound(dtype, **extents)
    taken = module.parameters()
    if len(taken) != len(bound):
        raise ArgumentError(f"{kernel.name}: the entry point takes {len(taken)} arguments; declared are {len(bound)}")
    given: list[Any] = []
    for one, (_, _, kind) in zip(bound, taken, strict=True):
        if isinstance(one, ArrayArgument):
            arrays[one.name].flags.writeable = one.is_written
            given.append(arrays[one.name])
        else:
            given.append(one.typed(kind))
    shape = kernel.geometry(dtype, **extents)
    return run(
        module.ptx,
        module.entry,
        shape.grid,
        shape.block,
        given,
        dynamic_shared=shape.dynamic_shared,
        races="error",
        variables=kernel.values_of_variables(extents),
    )


def _expected(
    kernel: own.Kernel,
    dtype: DTypeLike,
    flags: str,
    arch: str,
    extents: Mapping[str, Any],
    before: Mapping[str, Array],
    named: list[ArrayArgument],
) -> list[Array | None]:
    held = {name: array.copy() for name, array in before.items()}
    if isinstance(kernel.says, own.Kernel):
        _run(kernel.says, dtype, flags, arch, extents, held)
        return [held[each.name] for each in named if each.is_written]
    if any(each.ulp is not None for each in named):
        held = {name: array.astype(np.float64) if _is_real(array) else array for name, array in held.items()}
    return kernel.expected(held, extents)


def _is_real(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _problem(
    named: list[ArrayArgument], arrays: Mapping[str, Array], before: Mapping[str, Array], wanted: list[Array | None]
) -> str | None:
    for one, expects in zip((each for each in named if each.is_written), wanted, strict=True):
        if expects is None:
            continue
        found, known = arrays[one.name], np.asarray(expects)
        if one.ulp is None:
            wrong = (_bytes(found) != _bytes(known.astype(one.dtype))).any(axis=1)
        else:
            wrong = ~Near(one.dtype.name, one.ulp).holds(found, known.astype(np.float64)).reshape(-1)
        if wrong.any():
            first = int(wrong.argmax())
            place = tuple(int(n) for n in np.unravel_index(first, one.shape))
            if one.direction is Direction.OUT and (_bytes(found)[first] == _bytes(before[one.name])[first]).all():
                return f"element {list(place)} of {one.name} was never written"
            return f"element {list(place)} of {one.name} is {found[place]}, not {known[place]}"
    return None


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)
