"""Executes kernels on the CPU: their arrays are made, verified, and their memory transactions counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ERRORS, ArgumentError
from kernelwatch.instrument import fingerprint, inputs, skip_reasons
from kernelwatch.instrument.tolerance import Near
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import Array, ArrayArgument
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.suite import registry
from kernelwatch.suite.metrics import ARCH, METRICS
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.util import host_memory


@dataclass(frozen=True)
class CountedLaunch:
    """The counters of a launch, its geometry, its arrays afterwards by name, and what is wrong with them.

    `problem` is the first element that is not what the reference expects; None if all are, or nothing is expected.
    """

    counters: LaunchCounters
    geometry: Geometry
    arrays: Mapping[str, Array]
    problem: str | None


@lru_cache(maxsize=64)
def ptx(kernel: str, dtype: str, flags: str) -> str:
    """Return the PTX of a kernel of the installed commit, with source lines. Raises as `Kernel.ptx`."""
    return registry.kernel(kernel).ptx(dtype, flags, arch=ARCH)


def count(kernel: str | Kernel, dtype: DTypeLike, flags: str = FLAGS, /, **arguments: Any) -> CountedLaunch:
    """Compile a kernel, execute it for its whole grid, verify and count.

    Parameters
    ----------
    kernel : str or Kernel
        A name of the suite's, or a Kernel.
    dtype : dtype
        The swept one.
    flags : str
        nvcc's flags, as typed.
    **arguments : int or float
        The kernel's own, such as ``rows`` and ``columns``.

    Raises
    ------
    KernelwatchError
        A name is unknown, an argument is out of bounds, or the compilation failed.
    PtxError
        The PTX is not supported, or the kernel is wrong.
    MemoryError
        The arrays are larger than this machine's memory.
    """
    spec = registry.kernel(kernel) if isinstance(kernel, str) else kernel
    element = spec.element(dtype)
    named = [each for each in spec.bound(element, **arguments) if isinstance(each, ArrayArgument)]
    shape = spec.geometry(element, **arguments)
    # What is written thrice: before the launch, after it, and as the reference has it.
    host_memory.require(sum(each.nbytes * (3 if each.is_written else 1) for each in named))
    before = {each.name: inputs.content(each) for each in named}
    for array in before.values():
        array.flags.writeable = False  # a kernel that writes to an input fails, and so does a reference
    arrays, held = (
        {each.name: before[each.name].copy() if each.is_written else before[each.name] for each in named}
        for _ in ("afterwards", "as the reference has them")
    )
    counters = _run(spec, element, flags, arrays, arguments)
    problem = None
    if isinstance(spec.reference, Kernel):
        _run(spec.reference, element, flags, held, arguments)
        problem = _problem(named, arrays, before, [held[each.name] for each in named if each.is_written])
    elif spec.reference is not None:
        is_near = any(each.ulp is not None for each in named)  # then expected in float64
        problem = _problem(named, arrays, before, spec.expected(held, arguments, is_near=is_near))
    return CountedLaunch(counters, shape, arrays, problem)


def _run(
    kernel: Kernel, dtype: str, flags: str, arrays: Mapping[str, Array], arguments: Mapping[str, Any]
) -> LaunchCounters:
    module, shape = kernel.module(dtype, flags, arch=ARCH, lines=True), kernel.geometry(dtype, **arguments)
    bound, taken = kernel.bound(dtype, **arguments), module.parameters()
    if len(taken) != len(bound):
        raise ArgumentError(f"{kernel.name}: the entry point takes {len(taken)} arguments; declared are {len(bound)}")
    return execute_kernel(
        module.ptx,
        module.entry,
        shape.grid,
        shape.block,
        [
            arrays[one.name] if isinstance(one, ArrayArgument) else one.typed(kind)
            for one, (_, _, kind) in zip(bound, taken, strict=True)
        ],
        dynamic_shared=shape.dynamic_shared,
        races="error",
        unwritten="error",
        variables=kernel.values_of_variables(arguments),
    )


def _problem(
    named: Sequence[ArrayArgument], arrays: Mapping[str, Array], before: Mapping[str, Array], wanted: list[Array]
) -> str | None:
    for one, expects in zip((each for each in named if each.is_written), wanted, strict=True):
        found, known = arrays[one.name], expects
        if one.ulp is None:
            known = known.astype(one.dtype, copy=False)
            wrong = (_bytes(found) != _bytes(known)).any(axis=1)
        else:
            wrong = ~Near(one.dtype.name, one.ulp).holds(found, known.astype(np.float64)).reshape(-1)
        if wrong.any():
            first = int(wrong.argmax())
            place = tuple(int(n) for n in np.unravel_index(first, one.shape))
            if one.direction == "out" and (_bytes(found)[first] == _bytes(before[one.name])[first]).all():
                return f"element {list(place)} of {one.name} was never written"
            return f"element {list(place)} of {one.name} is {found[place]}, not {known[place]}"
    return None


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)


@dataclass(frozen=True)
class CountOutcome:
    """The result of a launch: its metrics, or why there are none."""

    metrics: dict[str, float]
    missing: str = ""
    failure: str = ""


def fingerprints(launches: Iterable[Launch]) -> dict[str, str]:
    """Return the fingerprint of each launch's metrics by its text, without executing it; none where it cannot be.

    Kernels with the same PTX have the same, whatever their flags are.
    """
    found: dict[str, str] = {}
    for one in launches:
        with suppress(*ERRORS, *skip_reasons.UNKNOWN):
            found[str(one)] = _fingerprint(registry.kernel(one.kernel), one)
    return found


def _fingerprint(kernel: Kernel, one: Launch) -> str:
    element = kernel.element(one.dtype)
    shape, reference = kernel.geometry(element, **one.arguments), kernel.reference
    text = ptx(one.kernel, element, one.flags)
    entry = kernel.module(element, one.flags, arch=ARCH, lines=True).entry
    return fingerprint.of(
        fingerprint.ptx(text, entry),
        fingerprint.VERSION,
        [fingerprint.function(each) for each in kernel.functions()],
        reference.module(element, one.flags, arch=ARCH).ptx if isinstance(reference, Kernel) else "",
        [shape.grid, shape.block, shape.dynamic_shared],
        [element, dict(one.arguments)],
        [_facts(each) for each in kernel.bound(element, **one.arguments) if isinstance(each, ArrayArgument)],
    )


def _facts(array: ArrayArgument) -> list[Any]:
    """What an array holds and how it is compared, but for a function that makes it."""
    values = "" if callable(array.values) else array.values
    kind = [str(array.dtype), array.direction]
    return [array.name, array.shape, *kind, values, array.limit, array.seed, array.ulp]


def outcomes(launches: Iterable[Launch]) -> dict[str, CountOutcome]:
    """Execute launches, once for each different PTX. Return each result by the launch's text."""
    done: dict[str, CountOutcome] = {}
    by_text: dict[Any, CountOutcome] = {}
    for one in launches:
        try:
            element = registry.kernel(one.kernel).element(one.dtype)
            key = (ptx(one.kernel, element, one.flags), one.kernel, one.dtype, *one.arguments.items())
            if key not in by_text:
                result = count(one.kernel, one.dtype, one.flags, **one.arguments)
                if result.problem:
                    by_text[key] = CountOutcome({}, failure=f"{one.kernel}: {result.problem}")
                else:
                    by_text[key] = CountOutcome({name: each.value(result.counters) for name, each in METRICS.items()})
            done[str(one)] = by_text[key]
        except skip_reasons.UNKNOWN as error:
            done[str(one)] = CountOutcome({}, missing=str(error))
        except ERRORS as error:
            # nvcc was given another file than the kernel's own.
            source = registry.kernel(one.kernel).source
            name = source.name if source.is_absolute() else str(source)
            text = re.sub(r'[^\s"]*\bkernel\.cu(?=[:(])', name.replace("\\", r"\\"), str(error))
            done[str(one)] = CountOutcome({}, failure=f"{type(error).__name__}: {text}")
    return done
