"""Kernels of the catalog, executed on the CPU and counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike

from benchmarks.instruments import host_memory
from benchmarks.instruments.lacking import LACKING
from benchmarks.instruments.poison import poisoned
from benchmarks.instruments.ptx.counters import LaunchCounters
from benchmarks.instruments.ptx.errors import PtxError
from benchmarks.instruments.ptx.execute import run
from gpu_kernels import build, catalog, dtypes, flags
from gpu_kernels.errors import GpuKernelsError
from gpu_kernels.spec import Geometry, Kernel

#: The architecture whose PTX is counted. Data movement compiles to the same loads and stores for all of them.
ARCH = "sm_90"


@dataclass(frozen=True)
class Counted:
    """The counters of a launch, its geometry, its output before and after, and what NumPy says of it."""

    counters: LaunchCounters
    geometry: Geometry
    before: npt.NDArray[Any]
    output: npt.NDArray[Any]
    expected: npt.NDArray[Any]

    def problem(self) -> str | None:
        """The first element that differs from the NumPy reference in any bit; None if none does."""
        size = self.output.itemsize
        before, output, expected = (
            np.ascontiguousarray(a).view(np.uint8).reshape(-1, size) for a in (self.before, self.output, self.expected)
        )
        wrong = (output != expected).any(axis=1)
        if not wrong.any():
            return None
        first = int(wrong.argmax())
        place = [int(n) for n in np.unravel_index(first, self.output.shape)]
        if (output[first] == before[first]).all():
            return f"element {place} of the output was never written"
        return (
            f"element {place} of the output is {output[first].tobytes().hex()}, not {expected[first].tobytes().hex()}"
        )


@lru_cache(maxsize=64)
def ptx(kernel: str, dtype: str, flag_set: str) -> str:
    """The PTX of a kernel, with source lines. Raises as `gpu_kernels.build.ptx`."""
    return build.ptx(kernel, dtype, flag_set, arch=ARCH)


def pattern(shape: tuple[int, ...], dtype: DTypeLike) -> npt.NDArray[Any]:
    """An array of the given shape whose bytes are those of a counter: every element of 4 bytes or more differs."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    unit = 8 if np.dtype(dtype).itemsize > 4 else np.dtype(dtype).itemsize
    counter = host_memory.counting(-(-size // unit), f"u{unit}", step=2654435761)
    return counter.view(np.uint8)[:size].view(dtype).reshape(shape)


def scalars(kernel: Kernel, arguments: dict[str, int]) -> list[np.int64]:
    """A kernel's integers in the order in which its entry point takes them."""
    return [np.int64(arguments[name]) for name in kernel.parameters]


def count(kernel: str | Kernel, dtype: DTypeLike, flag_set: str = flags.DEFAULT, /, **arguments: int) -> Counted:
    """Compile a kernel, execute it for its whole grid, and count.

    Parameters
    ----------
    kernel : str or Kernel
        A name of the catalog, or a kernel of one's own.
    dtype : dtype
        The element type, by item size.
    flag_set : str
        A row of ``gpu_kernels.flags``.
    **arguments : int
        The kernel's own, such as ``rows`` and ``columns``.

    Raises
    ------
    GpuKernelsError
        A name, an argument or the compilation.
    PtxError
        The PTX is not supported, or the kernel is wrong.
    MemoryError
        The arrays are larger than this machine's memory.
    """
    element = dtypes.get(dtype).name
    spec = catalog.get(kernel) if isinstance(kernel, str) else kernel
    geometry = spec.geometry(**arguments)
    output_shape, input_shape = spec.arrays(**arguments)
    # The output thrice: before the launch, after it, and as NumPy has it.
    host_memory.require((3 * math.prod(output_shape) + math.prod(input_shape)) * np.dtype(element).itemsize)
    source = pattern(input_shape, element)
    before = poisoned(output_shape, element)
    output = before.copy()
    expected = spec.reference(before, source, **arguments)
    named = isinstance(kernel, str)
    text = ptx(spec.name, element, flag_set) if named else build.ptx(spec, element, flag_set, arch=ARCH)
    counters = run(text, spec.name, geometry.grid, geometry.block, [output, source, *scalars(spec, arguments)])
    return Counted(counters, geometry, before, output, expected)


@dataclass(frozen=True)
class Outcome:
    """What became of a case: its metrics, or why there are none."""

    metrics: dict[str, float]
    missing: str = ""
    failure: str = ""


def metrics(counters: LaunchCounters) -> dict[str, float]:
    """What asv tracks of a launch; zero where there was no request."""
    totals = counters.totals()
    shared = totals["shared_load_requests"] + totals["shared_store_requests"]
    conflicts = totals["shared_load_bank_conflicts"] + totals["shared_store_bank_conflicts"]
    return {
        "load_sectors": totals["load_sectors"] / max(totals["load_requests"], 1),
        "store_sectors": totals["store_sectors"] / max(totals["store_requests"], 1),
        "bank_conflicts": conflicts / max(shared, 1),
        "instructions": counters.thread_instructions / counters.threads,
    }


def outcomes(cases: Iterable[tuple[Any, ...]]) -> dict[Any, Outcome]:
    """Execute cases, each (kernel, dtype, flag set, (name, argument), ...), once for each different PTX."""
    done: dict[Any, Outcome] = {}
    by_text: dict[Any, Outcome] = {}
    for case in cases:
        kernel, dtype, flag_set, *arguments = case
        try:
            key = (ptx(kernel, dtypes.get(dtype).name, flag_set), kernel, dtype, *arguments)
            if key not in by_text:
                by_text[key] = _outcome(kernel, dtype, flag_set, dict(arguments))
            done[case] = by_text[key]
        except LACKING as error:
            done[case] = Outcome({}, missing=str(error))
        except (GpuKernelsError, PtxError) as error:
            done[case] = Outcome({}, failure=f"{type(error).__name__}: {error}")
    return done


def _outcome(kernel: str, dtype: str, flag_set: str, arguments: dict[str, int]) -> Outcome:
    result = count(kernel, dtype, flag_set, **arguments)
    problem = result.problem()
    if problem is not None:
        return Outcome({}, failure=f"{kernel}: {problem}")
    return Outcome(metrics(result.counters))
