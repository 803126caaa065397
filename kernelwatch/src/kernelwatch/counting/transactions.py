"""Executes kernels on the CPU, and counts their memory transactions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch import suite
from kernelwatch.counting import own as counting
from kernelwatch.counting.metrics import METRICS
from kernelwatch.counting.own import CountedKernel
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint, inputs, skips
from kernelwatch.instrument.poison import poisoned
from kernelwatch.instrument.verification import Near, expected_output
from kernelwatch.kernel import Array, Kernel, Launch, own
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.launch import FLAGS
from ptxcount import host_memory
from ptxcount.counters import LaunchCounters
from ptxcount.execute import run
from ptxcount.given import Argument

#: The architecture whose PTX is counted. Data movement compiles to the same loads and stores for all of them.
ARCH = "sm_90"


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
def ptx(kernel: str, dtype: str, flags: str) -> str:
    """Return the PTX of a kernel of the installed commit, with source lines. Raises as `Kernel.ptx`."""
    return suite.kernel(kernel).ptx(dtype, flags, arch=ARCH)


def scalars(kernel: Kernel, arguments: dict[str, float]) -> list[Argument]:
    """Return a kernel's arguments behind the arrays, in the order in which its entry point takes them."""
    integers = kernel.operation.minimum
    return [(np.int64 if name in integers else np.float64)(arguments[name]) for name in kernel.parameters]


def count(
    kernel: str | Kernel | own.Kernel, dtype: DTypeLike, flags: str = FLAGS, /, **arguments: Any
) -> CountedLaunch | CountedKernel:
    """Compile a kernel, execute it for its whole grid, and count.

    Parameters
    ----------
    kernel : str or Kernel
        A name of the suite's, or a Kernel.
    dtype : dtype
        The element type: one that the operation has.
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
    spec = suite.kernel(kernel) if isinstance(kernel, str) else kernel
    element = spec.element(dtype)
    if isinstance(spec, own.Kernel):
        return counting.count(spec, element, flags, ARCH, arguments)
    geometry = spec.geometry(element, **arguments)
    output_shape, *input_shapes = spec.arrays(**arguments)
    ulp = spec.ulp(element)
    near = None if ulp is None else Near(element, ulp)
    # The output thrice: before the launch, after it, and as NumPy has it, which may be written into a copy.
    elements = 3 * math.prod(output_shape) + sum(map(math.prod, input_shapes))
    host_memory.require(elements * np.dtype(element).itemsize)
    sources = [
        inputs.counted(shape, element, place, is_exact=spec.is_exact) for place, shape in enumerate(input_shapes)
    ]
    for source in sources:
        source.flags.writeable = False  # a kernel that writes to one fails
    before = poisoned(output_shape, element)
    output = before.copy()
    expected = expected_output(lambda *arrays: spec.reference(*arrays, **arguments), before.copy(), sources, near)
    named = isinstance(kernel, str)
    text = ptx(spec.name, element, flags) if named else spec.ptx(element, flags, arch=ARCH)
    counters = run(
        text,
        spec.name,
        geometry.grid,
        geometry.block,
        [output, *sources, *scalars(spec, arguments)],
        dynamic_shared=geometry.dynamic_shared,
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
        with suppress(*ERRORS, *skips.UNKNOWN):
            kernel = suite.kernel(one.kernel)
            element = kernel.element(one.dtype)
            shape = kernel.geometry(element, **one.arguments)
            if isinstance(kernel, own.Kernel):
                found[str(one)] = _of_own(kernel, one, element)
                continue
            found[str(one)] = fingerprint.of(
                fingerprint.ptx(ptx(one.kernel, element, one.flags), kernel.name),
                fingerprint.counter(),
                fingerprint.function(kernel.says),
                [shape.grid, shape.block, shape.dynamic_shared],
                [element, dict(one.arguments), kernel.arrays(**one.arguments)],
                [kernel.ulp(element), kernel.is_exact],
            )
    return found


def _of_own(kernel: own.Kernel, one: Launch, element: str) -> str:
    """Return the fingerprint of the metrics of anybody's kernel; what declares it counts as code of the suite."""
    module = kernel.module(element, one.flags, arch=ARCH, lines=True)
    shape, says = kernel.geometry(element, **one.arguments), kernel.says
    reference = says.module(element, one.flags, arch=ARCH).ptx if isinstance(says, own.Kernel) else ""
    return fingerprint.of(
        fingerprint.ptx(module.ptx, module.entry),
        fingerprint.counter(),
        [fingerprint.function(each) for each in kernel.functions()],
        reference,
        [shape.grid, shape.block, shape.dynamic_shared],
        [element, dict(one.arguments)],
    )


def outcomes(launches: Iterable[Launch]) -> dict[str, CountOutcome]:
    """Execute launches, once for each different PTX. Return each result by the launch's text."""
    done: dict[str, CountOutcome] = {}
    by_text: dict[Any, CountOutcome] = {}
    for one in launches:
        try:
            element = suite.kernel(one.kernel).element(one.dtype)
            key = (ptx(one.kernel, element, one.flags), one.kernel, one.dtype, *one.arguments.items())
            if key not in by_text:
                by_text[key] = _outcome(one)
            done[str(one)] = by_text[key]
        except skips.UNKNOWN as error:
            done[str(one)] = CountOutcome({}, missing=str(error))
        except ERRORS as error:
            done[str(one)] = CountOutcome({}, failure=f"{type(error).__name__}: {_placed(str(error), one)}")
    return done


def _placed(text: str, one: Launch) -> str:
    """Call the file that nvcc was given by the name of the kernel's own."""
    kernel = suite.kernel(one.kernel)
    name = getattr(kernel, "file", "") or kernel.source.name
    return re.sub(r'[^\s"]*\bkernel\.cu(?=[:(])', lambda _: name, text)


def _outcome(one: Launch) -> CountOutcome:
    result = count(one.kernel, one.dtype, one.flags, **one.arguments)
    problem = result.problem()
    if problem is not None:
        return CountOutcome({}, failure=f"{one.kernel}: {problem}")
    return CountOutcome({name: metric.value(result.counters) for name, metric in METRICS.items()})
