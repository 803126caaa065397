"""Launches of every kernel of the suite at shapes outside the suite's axes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernelwatch.kernel import Launch
from kernelwatch.suite import registry

#: Awkward shapes, small enough for the CPU. A kernel is launched at those that name its parameters.
SMALL = (
    "rows=33 columns=65",
    "rows=1000 columns=700",
    "size=4099 offset=31",
    "size=100003 offset=1",
    "size=4099 stride=8",
    "size=50001 stride=3",
    "size=1025",
    "size=100003",
    "rows=33 inner=65 columns=31",
    "rows=100 inner=127 columns=160",
    "bins=64 size=4099",
    "bins=100 size=100003",
)

#: Shapes for timing: launches take up to some milliseconds and some hundred megabytes.
LARGE = (
    "rows=33 columns=65",
    "rows=512 columns=512",
    "rows=777 columns=1313",
    "rows=3000 columns=7000",
    "size=1000003 offset=5",
    "size=20000000 offset=3",
    "size=300007 stride=5",
    "size=3000000 stride=7",
    "size=1000003",
    "size=20000000",
    "rows=500 inner=300 columns=700",
    "rows=1500 inner=1000 columns=1200",
    "bins=100 size=1000003",
    "bins=50 size=50000000",
)

#: Limit on useful bytes per thread: a single thread takes seconds for a large matrix.
MOST_A_THREAD = 1 << 18


def list_launches(kernel: str, texts: Iterable[str]) -> list[Launch]:
    """Return a kernel's launches at the shapes that name the kernel's parameters, in every dtype of the suite.

    Raises
    ------
    LookupError
        No shape fits. A new kernel needs shapes in `SMALL` and `LARGE`.
    """
    suite_kernel, dtypes = registry.find_kernel(kernel), sorted(registry.current_suite().dtypes[kernel])
    all_launches = [Launch.parse(f"{kernel} {text} {dtype}") for text in texts for dtype in dtypes]
    suitable = [
        launch for launch in all_launches if set(launch.arguments) == set(suite_kernel.parameters) and _is_short(launch)
    ]
    if not suitable:
        raise LookupError(f"{kernel} takes {', '.join(suite_kernel.parameters)}; add a shape to tests/gpu/cases.py")
    return suitable


def list_all_launches(texts: Iterable[str]) -> list[Launch]:
    """Return the launches of all kernels of the suite. Raise LookupError as `list_launches` does."""
    return [launch for kernel in registry.current_suite().kernels() for launch in list_launches(kernel, texts)]


def _is_short(launch: Launch) -> bool:
    kernel, arguments = registry.find_kernel(launch.kernel), launch.arguments
    shape = kernel.compute_geometry(launch.dtype, **arguments)
    return kernel.useful_bytes(launch.dtype, **arguments) <= MOST_A_THREAD * math.prod(shape.grid + shape.block)
