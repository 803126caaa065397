"""One interface to the installed package's kernels, for every commit that may be installed.

The package's number `CONTRACT` is the version of its interface. Packages up to 917313d have none, which counts as 1: a
kernel then has one input, whose bits are moved, and its geometry does not depend on the element type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gpu_kernels
from gpu_kernels import catalog, dtypes

if TYPE_CHECKING:
    from gpu_kernels.geometry import Geometry
    from gpu_kernels.spec import Kernel

CONTRACT: int = getattr(gpu_kernels, "CONTRACT", 1)


def element(kernel: Kernel, dtype: Any) -> str:
    """Return the name of the element type that serves a dtype. Raises UnknownDtypeError if there is none."""
    return (dtypes.get(dtype) if CONTRACT < 2 else kernel.operation.element(dtype)).name


def operation(kernel: Kernel) -> str:
    """Return a name for a kernel's operation: the first kernel of the package that performs it."""
    return next((name for name, each in catalog.KERNELS.items() if each.operation is kernel.operation), kernel.name)


def reference(kernel: Kernel) -> Callable[..., Any]:
    """Return the function that says what the output must hold."""
    found: Callable[..., Any] = kernel.reference if CONTRACT < 2 else kernel.operation.reference
    return found


def geometry(kernel: Kernel, dtype: str, arguments: dict[str, float], multiprocessors: int | None = None) -> Geometry:
    """Return the launch geometry, for a device of so many multiprocessors if they are given."""
    if CONTRACT < 2:
        return kernel.geometry(**arguments)
    known = () if multiprocessors is None else (multiprocessors,)
    return kernel.geometry(dtype, *known, **arguments)


def values(kernel: Kernel, dtype: str, arguments: dict[str, float]) -> tuple[int | float, ...]:
    """Return the arguments in the entry point's order. Raises ArgumentError if one is out of bounds."""
    return kernel.check(dtype, **arguments)


def dynamic_shared(found: Geometry) -> int:
    """Return the bytes of dynamic shared memory of a block."""
    return 0 if CONTRACT < 2 else found.dynamic_shared


def is_exact(kernel: Kernel) -> bool:
    """Whether inputs hold values whose sums and products are exact, not any bits."""
    return CONTRACT >= 2 and kernel.operation.computes


def ulp(kernel: Kernel, dtype: str) -> float | None:
    """Return how far an output may lie from its reference, in units of the last place; None: not at all."""
    return None if CONTRACT < 2 else kernel.operation.ulp.get(dtype)
