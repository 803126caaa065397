"""The registered suite of a project, and the names of its benchmarks in asv.

The library contains no suite. A project names its suite in pyproject.toml: `suite = "benchmarks.suite:SUITE"` in
`[tool.kernelwatch]`. This module imports it on first use.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import one_line
from kernelwatch.errors import KernelwatchError, NoSuiteError, SuiteError, UnknownKernelError
from kernelwatch.kernel import Kernel, sources
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.suite.benchmark_names import COMPILED_MODULE, COUNTED_MODULE, copy_ratio_name
from kernelwatch.suite.benchmark_names import Kind as Kind  # noqa: PLC0414 -- exported
from kernelwatch.suite.metrics import METRICS
from kernelwatch.suite.sweep import Sweep

#: Resource in the report of ptxas -> its unit and title.
RESOURCES = {
    "registers": ("registers/thread", "registers per thread"),
    "spill_bytes": ("bytes/thread", "bytes spilled per thread"),
    "shared_bytes": ("bytes/block", "static shared memory per block"),
    "stack_bytes": ("bytes/thread", "stack frame per thread"),
}


@dataclass(frozen=True)
class Suite:
    """The kernels of a project, and the sweeps in which they are measured.

    Parameters
    ----------
    kernels : callable
        Returns the kernels of the installed commit by name. The commit may be an old one.
    timed : sequence of Sweep
        Sweeps that are timed on a GPU. Samples of each launch and of a copy of the same bytes are interleaved.
    copy : Sweep or None
        Sweep of the library's own copy, for comparison.
    counted : sequence of Sweep
        Sweeps whose memory transactions are counted, for each kernel in all dtypes that it supports.
    compiled : Sweep
        The sweep of the compiled kernels, with the axes kernel, dtype, flags and arch, in this order.
    """

    kernels: Callable[[], Mapping[str, Kernel]]
    timed: Sequence[Sweep]
    copy: Sweep | None
    counted: Sequence[Sweep]
    compiled: Sweep

    @cached_property
    def benchmarks(self) -> dict[str, tuple[Kind, Sweep]]:
        """Benchmark -> the kind of its numbers, and its sweep."""
        benchmarks: dict[str, tuple[Kind, Sweep]] = {}
        for sweep in self.timed:
            benchmarks |= {
                time_benchmark_name(sweep): (Kind.TIMED, sweep),
                copy_ratio_name(time_benchmark_name(sweep)): (Kind.COPY_RATIO, sweep),
            }
        if self.copy is not None:
            benchmarks[time_benchmark_name(self.copy)] = Kind.TIMED, self.copy
        for sweep in self.counted:
            benchmarks |= {
                f"{COUNTED_MODULE}.{sweep.name}.track_{name}": (Kind.COUNTED, sweep)
                for name, metric in METRICS.items()
                if sweep.shared or not metric.shared
            }
        compiled = f"{COMPILED_MODULE}.{self.compiled.name}.track_"
        return benchmarks | {f"{compiled}{name}": (Kind.COMPILED, self.compiled) for name in RESOURCES}

    @cached_property
    def sweeps(self) -> dict[str, Sweep]:
        """Benchmark class, with its module -> its sweep."""
        return {name.rpartition(".")[0]: sweep for name, (_, sweep) in self.benchmarks.items()}

    @cached_property
    def benchmarks_by_class(self) -> dict[str, list[str]]:
        """Text "MODULE.CLASS" -> its benchmarks; a timed class has the time first, then its ratio to the copy."""
        by_class: dict[str, list[str]] = {}
        for name, (kind, _) in self.benchmarks.items():
            if kind is not Kind.COPY_RATIO:
                by_class.setdefault(name.rpartition(".")[0], []).append(name)
            if kind is Kind.TIMED and copy_ratio_name(name) in self.benchmarks:
                by_class[name.rpartition(".")[0]].append(copy_ratio_name(name))
        return by_class

    @property
    def example(self) -> str:
        """The text of a counted launch, or else a pattern, as an example in help texts and errors."""
        launches = (sweep.launch(point) for sweep in self.counted for point in sweep.points())
        return str(next(launches, "KERNEL NAME=NUMBER ... DTYPE FLAGS"))

    @cached_property
    def dtypes(self) -> dict[str, frozenset[str]]:
        """Counted kernel -> the dtypes in which the suite counts it."""
        dtypes: dict[str, frozenset[str]] = {}
        for sweep in self.counted:
            for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
                dtypes[kernel] = dtypes.get(kernel, frozenset()) | set(map(str, sweep.axes.get("dtype", [DTYPE])))
        return dtypes


#: Suite of watched kernels in this process, if any.
_registered: list[Suite] = []


def register_suite(suite: Suite) -> None:
    """Set the suite of this process; it replaces the suite of the settings."""
    _registered[:] = [suite]
    _load_suite.cache_clear()


def current_suite() -> Suite:
    """Return the project's suite. Raises NoSuiteError if none is named, SuiteError if it is missing or broken.

    Raises KernelwatchError if pyproject.toml is not valid.
    """
    suite = _registered[-1] if _registered else _load_suite()
    if isinstance(suite, KernelwatchError):
        raise suite.with_traceback(None)
    return suite


def suite_identity() -> int:
    """Return a cache key: the id of the current suite, or of the error if the suite cannot be loaded."""
    return id(_registered[-1] if _registered else _load_suite())


@cache
def _load_suite() -> Suite | KernelwatchError:
    """Return the suite of the settings, or its error, also from the cache: a failing import may take seconds."""
    setting = settings.suite_name()
    module, _, name = setting.partition(":")
    try:
        imported = _import_module(module)
    except SuiteError as error:
        return error
    if isinstance(suite := getattr(imported, name, None), Suite):
        return suite
    advice = 'name your suite in pyproject.toml, as [tool.kernelwatch] suite = "package.module:SUITE"'
    if imported is None:
        init = "or run kernelwatch init, which writes benchmarks/kernels.py"
        message = f"there is no module {module}; {advice}, {init}"
    elif not name or hasattr(imported, name):
        message = f"{setting!r} is not a suite; {advice}"
    else:
        message = f"{module} has no {name}; declare a kernel there, or {advice}"
    return SuiteError(message) if settings.has_suite() else NoSuiteError(message)


def _import_module(module: str) -> Any:
    """Import a module of the suite from the checkout; return None if the module does not exist."""
    if str(ROOT) not in sys.path:  # at the end, so that other modules come from the measured commit
        sys.path.append(str(ROOT))
    try:
        _pin_package(module.partition(".")[0])
        return importlib.import_module(module)
    except Exception as error:  # the import runs a user's code
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            return None
        raise SuiteError(
            f"{_find_place(error)}: {type(error).__name__}: {one_line(getattr(error, 'msg', error))}"
        ) from error


def _pin_package(package: str) -> None:
    """Import a package from the checkout, even if the working folder has another with this name."""
    file = ROOT / package / "__init__.py"
    if package not in sys.modules and file.is_file():
        spec = importlib.util.spec_from_file_location(package, file)
        assert spec is not None, "it is a Python file"
        assert spec.loader is not None, "it is a Python file"
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])


def _find_place(error: Exception) -> str:
    """Return file and line of a syntax error, or of the project's last frame in an error's traceback."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    library = Path(__file__).parents[1]
    outside_library = [frame for frame in frames if not Path(frame.filename).is_relative_to(library)]
    in_project = [
        frame
        for frame in outside_library
        if any(map(Path(frame.filename).is_relative_to, (ROOT, sources.checkout_folder())))
    ]
    place = (in_project or outside_library or frames)[-1]
    return f"{place.filename}:{place.lineno}"


def find_kernel(name: str) -> Kernel:
    """Return a kernel's form at the measured commit. Raises UnknownKernelError if the suite has no such kernel."""
    return find_declared_kernel(name).form_at_commit


def find_declared_kernel(name: str) -> Kernel:
    """Return a kernel's newest form, as declared. Raises UnknownKernelError if the suite has no such kernel."""
    kernels = current_suite().kernels()
    if name not in kernels:
        allowed = f"allowed are {', '.join(kernels)}" if kernels else "the package defines no kernelwatch kernels"
        raise UnknownKernelError(f"there is no kernel {name!r}; {allowed}")
    return kernels[name]


def find_measured_folder() -> Path:
    """Return the folder of the measured code: the installed package if the settings name one, else the commit's."""
    if not settings.package_name():
        return sources.checkout_folder()
    file = importlib.import_module(settings.package_name()).__file__
    assert file is not None, "the package has files"
    return Path(file).parent


def time_benchmark_name(sweep: Sweep) -> str:
    """Return the name of a timed sweep's benchmark."""
    return f"{sweep.module}.{sweep.name}.time_{'isolated' if sweep.isolated else 'back_to_back'}"
