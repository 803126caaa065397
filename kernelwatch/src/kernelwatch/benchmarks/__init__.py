"""The base classes of kernel benchmarks. asv alone can run them; kernelwatch's runner is faster.

Import the package, `import kernelwatch.benchmarks as kw`, not the classes: asv would treat imported classes as the
module's own.
"""

from collections.abc import Callable, Mapping
from types import ModuleType

from kernelwatch.benchmarks.base import Benchmark, iter_benchmarks
from kernelwatch.benchmarks.compiled import Compiled
from kernelwatch.benchmarks.counted import Counted, CountedWithShared
from kernelwatch.benchmarks.timed import BackToBack, Control, Isolated, Timed
from kernelwatch.errors import ArgumentError
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
    """Return the suite of the benchmark classes that the modules define, in the order of their definitions.

    Parameters
    ----------
    kernels : callable
        Returns the kernels of the installed commit by name.
    *modules : module
        Modules with benchmark classes. Exactly one class derives from `Compiled`, else ArgumentError is raised. One
        class may time the library's own copy.
    """
    classes = [benchmark for module in modules for benchmark in iter_benchmarks(module)]
    timed = [benchmark.sweep for benchmark in classes if issubclass(benchmark, Timed)]
    compiled = [benchmark.sweep for benchmark in classes if issubclass(benchmark, Compiled)]
    if len(compiled) != 1:
        raise ArgumentError(f"suite_of needs modules with exactly one class of Compiled; given: {len(compiled)}")
    return Suite(
        kernels=kernels,
        timed=tuple(sweep for sweep in timed if sweep.kernel != matrix_copy.NAME),
        copy=next((sweep for sweep in timed if sweep.kernel == matrix_copy.NAME), None),
        counted=tuple(benchmark.sweep for benchmark in classes if issubclass(benchmark, Counted)),
        compiled=compiled[0],
    )
