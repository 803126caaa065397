"""Executes kernels of the catalog on the CPU, and counts their memory transactions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kernels import build, catalog, flags
from gpu_kernels.errors import GpuKernelsError
from kernelwatch.instrument import fingerprint, inputs, installed, skips
from kernelwatch.instrument.poison import poisoned
from kernelwatch.instrument.verification import Near, expected_output
from ptxcount import host_memory
from ptxcount.counters import LaunchCounters
from ptxcount.errors import PtxError
from ptxcount.execute import Argument, run

if TYPE_CHECKING:
    from gpu_kernels.geometry import Geometry
    from gpu_kernels.spec import Kernel
    from gpu_kernels.sweep import Launch

Array = NDArray[Any]

#: The architecture whose PTX is counted. Data movement compiles to the same loads and stores for all of them.
ARCH = "sm_90"


class Metric(NamedTuple):
    """One number that asv tracks for a launch.

    Its unit, what a person calls it, how it is taken from the counters, and whether shared memory must be used for it
    to mean anything.
    """

    unit: str
    title: str
    value: Callable[[LaunchCounters], float]
    shared: bool = False


def _ratio(count: str, of: str) -> Callable[[LaunchCounters], float]:
    """Return totals over totals, summed over loads and stores if so asked; zero where there was no request."""

    def value(counters: LaunchCounters) -> float:
        totals = counters.totals()
        kinds = ("load", "store") if "{}" in count else ("",)
        counted, requests = (sum(totals[name.format(kind)] for kind in kinds) for name in (count, of))
        return counted / max(requests, 1)

    return value


#: To add a metric: one row. Atomics are in none but the instructions: ptxcount does not count them as the chip does.
METRICS = {
    "load_sectors": Metric("sectors/request", "sectors a load request", _ratio("load_sectors", "load_requests")),
    "store_sectors": Metric("sectors/request", "sectors a store request", _ratio("store_sectors", "store_requests")),
    "load_lines": Metric("lines/request", "cache lines a load request", _ratio("load_lines", "load_requests")),
    "store_lines": Metric("lines/request", "cache lines a store request", _ratio("store_lines", "store_requests")),
    "bank_conflicts": Metric(
        "conflicts/request",
        "bank conflicts a shared memory request",
        _ratio("shared_{}_bank_conflicts", "shared_{}_requests"),
        shared=True,
    ),
    "instructions": Metric(
        "instructions/thread", "PTX instructions executed a thread", _ratio("thread_instructions", "threads")
    ),
}


@dataclass(frozen=True)
class CountedLaunch:
    """The counters of a launch, its geometry, its output before and after, and what NumPy says of it."""

    counters: LaunchCounters
    geometry: Geometry
    before: Array
    output: Array
    expected: Array
    near: Near | None = None

    def problem(self) -> str | None:
        """Return the first element that is not what NumPy expects; None if all are."""
        size = self.output.itemsize
        before, output = (np.ascontiguousarray(a).view(np.uint8).reshape(-1, size) for a in (self.before, self.output))
        if self.near is None:
            expected = np.ascontiguousarray(self.expected).view(np.uint8).reshape(-1, size)
            wrong = (output != expected).any(axis=1)
        else:
            wrong = ~self.near.holds(self.output, self.expected).reshape(-1)
        if not wrong.any():
            return None
        first = int(wrong.argmax())
        place = [int(n) for n in np.unravel_index(first, self.output.shape)]
        if (output[first] == before[first]).all():
            return f"element {place} of the output was never written"
        if self.near is not None:
            return f"element {place} of the output is {self.output[tuple(place)]}, not {self.expected[tuple(place)]}"
        return (
            f"element {place} of the output is {output[first].tobytes().hex()}, not {expected[first].tobytes().hex()}"
        )


@lru_cache(maxsize=64)
def ptx(kernel: str, dtype: str, flag_set: str) -> str:
    """Return the PTX of a kernel, with source lines. Raises as `gpu_kernels.build.ptx`."""
    return build.ptx(kernel, dtype, flag_set, arch=ARCH)


def scalars(kernel: Kernel, arguments: dict[str, float]) -> list[Argument]:
    """Return a kernel's arguments behind the arrays, in the order in which its entry point takes them."""
    integers = kernel.operation.minimum
    return [(np.int64 if name in integers else np.float64)(arguments[name]) for name in kernel.parameters]


def count(kernel: str | Kernel, dtype: DTypeLike, flag_set: str = flags.DEFAULT, /, **arguments: Any) -> CountedLaunch:
    """Compile a kernel, execute it for its whole grid, and count.

    Parameters
    ----------
    kernel : str or Kernel
        A name of the catalog, or a Kernel.
    dtype : dtype
        The element type: one that the operation has.
    flag_set : str
        A row of ``gpu_kernels.flags``.
    **arguments : int or float
        The kernel's own, such as ``rows`` and ``columns``.

    Raises
    ------
    GpuKernelsError
        A name is unknown, an argument is out of bounds, or the compilation failed.
    PtxError
        The PTX is not supported, or the kernel is wrong.
    MemoryError
        The arrays are larger than this machine's memory.
    """
    spec = catalog.get(kernel) if isinstance(kernel, str) else kernel
    element = installed.element(spec, dtype)
    geometry = installed.geometry(spec, element, arguments)
    output_shape, *input_shapes = spec.arrays(**arguments)
    ulp, is_exact = installed.ulp(spec, element), installed.is_exact(spec)
    near = None if ulp is None else Near(element, ulp)
    # The output thrice: before the launch, after it, and as NumPy has it, which may be written into a copy.
    elements = 3 * math.prod(output_shape) + sum(map(math.prod, input_shapes))
    host_memory.require(elements * np.dtype(element).itemsize)
    sources = [inputs.counted(shape, element, place, is_exact=is_exact) for place, shape in enumerate(input_shapes)]
    for source in sources:
        source.flags.writeable = False  # a kernel that writes to one fails
    before = poisoned(output_shape, element)
    output = before.copy()
    expected = expected_output(lambda *arrays: spec.reference(*arrays, **arguments), before.copy(), sources, near)
    named = isinstance(kernel, str)
    text = ptx(spec.name, element, flag_set) if named else build.ptx(spec, element, flag_set, arch=ARCH)
    counters = run(
        text,
        spec.name,
        geometry.grid,
        geometry.block,
        [output, *sources, *scalars(spec, arguments)],
        dynamic_shared=installed.dynamic_shared(geometry),
        races="error",
    )
    return CountedLaunch(counters, geometry, before, output, expected, near)


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
        with suppress(GpuKernelsError, *skips.UNKNOWN):
            kernel = catalog.get(one.kernel)
            element = installed.element(kernel, one.dtype)
            shape = installed.geometry(kernel, element, dict(one.arguments))
            found[str(one)] = fingerprint.of(
                fingerprint.ptx(ptx(one.kernel, element, one.flags), kernel.name),
                fingerprint.counter(),
                fingerprint.function(installed.reference(kernel)),
                [shape.grid, shape.block, installed.dynamic_shared(shape)],
                [element, dict(one.arguments), kernel.arrays(**one.arguments)],
                [installed.ulp(kernel, element), installed.is_exact(kernel)],
            )
    return found


def outcomes(launches: Iterable[Launch]) -> dict[str, CountOutcome]:
    """Execute launches, once for each different PTX. Return each result by the launch's text."""
    done: dict[str, CountOutcome] = {}
    by_text: dict[Any, CountOutcome] = {}
    for one in launches:
        try:
            element = installed.element(catalog.get(one.kernel), one.dtype)
            key = (ptx(one.kernel, element, one.flags), one.kernel, one.dtype, *one.arguments.items())
            if key not in by_text:
                by_text[key] = _outcome(one)
            done[str(one)] = by_text[key]
        except skips.UNKNOWN as error:
            done[str(one)] = CountOutcome({}, missing=str(error))
        except (GpuKernelsError, PtxError) as error:
            done[str(one)] = CountOutcome({}, failure=f"{type(error).__name__}: {error}")
    return done


def _outcome(one: Launch) -> CountOutcome:
    result = count(one.kernel, one.dtype, one.flags, **one.arguments)
    problem = result.problem()
    if problem is not None:
        return CountOutcome({}, failure=f"{one.kernel}: {problem}")
    return CountOutcome({name: metric.value(result.counters) for name, metric in METRICS.items()})
