"""The base classes of benchmarks of kernels. They run under plain asv as they are; the runner executes them faster.

`import kernelwatch.benchmarks as kw`, and not the classes themselves: asv would take what a module imports for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from kernelwatch.benchmarks.base import Benchmark, found
from kernelwatch.benchmarks.compiled import Compiled
from kernelwatch.benchmarks.counted import Counted, CountedWithShared
from kernelwatch.benchmarks.timed import BackToBack, Control, Isolated, Timed
from kernelwatch.kernel import matrix_copy
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.suite.registry import Suite

__all__ = [
    "BackToBack",
    "Benchmark",
    "Compiled",
    "Control",
    "Counted",
    "CountedWithShared",
    "Isolated",
    "Timed",
    "suite_of",
]


def suite_of(kernels: Callable[[], Mapping[str, Kernel]], *modules: ModuleType) -> Suite:
    """Return the suite that the classes of some modules make, in their order.

    Parameters
    ----------
    kernels : callable
        Returns the kernels of the installed commit by name.
    *modules : module
        Modules with classes of benchmarks. One class is derived from `Compiled`; one may time the library's own copy.
    """
    classes = [one for module in modules for one in found(module)]
    timed = [one.sweep for one in classes if issubclass(one, Timed)]
    (compiled,) = (one.sweep for one in classes if issubclass(one, Compiled))
    return Suite(
        kernels=kernels,
        timed=tuple(sweep for sweep in timed if sweep.kernel != matrix_copy.NAME),
        copy=next((sweep for sweep in timed if sweep.kernel == matrix_copy.NAME), None),
        counted=tuple(one.sweep for one in classes if issubclass(one, Counted)),
        compiled=compiled,
    )
