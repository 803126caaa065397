"""What a project hands over to be watched, and what follows from it: the benchmarks that asv sees, by name.

The library imports no suite. A project names its own in pyproject.toml: `suite = "benchmarks.suite:SUITE"` in
`[tool.kernelwatch]`. This module finds it when it is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import one_line
from kernelwatch.errors import KernelwatchError, SuiteError, UnknownKernelError
from kernelwatch.kernel import Kernel, Launch, matrix_copy, sources
from kernelwatch.kernel.launch import read
from kernelwatch.suite.benchmark_names import COMPILED_MODULE, COUNTED_MODULE, control_name
from kernelwatch.suite.benchmark_names import Kind as Kind  # noqa: PLC0414 -- exported
from kernelwatch.suite.metrics import METRICS
from kernelwatch.suite.sweep import Sweep

T = TypeVar("T")


#: What a compiled benchmark reads of the compiler's report -> its unit, and what a person calls it.
RESOURCES = {
    "registers": ("registers/thread", "registers a thread"),
    "spill_bytes": ("bytes/thread", "bytes spilled a thread"),
    "shared_bytes": ("bytes/block", "static shared memory a block"),
    "stack_bytes": ("bytes/thread", "stack frame a thread"),
}


@dataclass(frozen=True)
class Suite:
    """The kernels of a project, and where they are measured.

    Parameters
    ----------
    kernels : callable
        Returns the kernels of the installed commit by name. That may be an old one.
    timed : sequence of Sweep
        What is timed on a GPU. Each is timed in turns with a copy of the same bytes.
    copy : Sweep or None
        What is timed of the library's own copy, for comparison.
    counted : sequence of Sweep
        The launches whose memory transactions are counted, for each kernel in all the dtypes that it is meant for.
    compiled : Sweep
        Axes kernel, dtype, flags and arch: what is compiled, on any machine.
    """

    kernels: Callable[[], Mapping[str, Kernel]]
    timed: Sequence[Sweep]
    copy: Sweep | None
    counted: Sequence[Sweep]
    compiled: Sweep

    @cached_property
    def benchmarks(self) -> dict[str, tuple[Kind, Sweep]]:
        """Benchmark -> what its numbers are, and its sweep."""
        found: dict[str, tuple[Kind, Sweep]] = {}
        for sweep in self.timed:
            found |= {time(sweep): (Kind.TIMED, sweep), control(time(sweep)): (Kind.CONTROL, sweep)}
        if self.copy is not None:
            found[time(self.copy)] = Kind.TIMED, self.copy
        for sweep in self.counted:
            found |= {f"{COUNTED_MODULE}.{sweep.name}.track_{name}": (Kind.COUNTED, sweep) for name in metrics(sweep)}
        compiled = f"{COMPILED_MODULE}.{self.compiled.name}.track_"
        return found | {f"{compiled}{name}": (Kind.COMPILED, self.compiled) for name in RESOURCES}

    @cached_property
    def together(self) -> dict[str, list[str]]:
        """Class, with its module -> the benchmarks whose numbers one measurement gives: a time comes first."""
        found: dict[str, list[str]] = {}
        for name, (kind, _) in self.benchmarks.items():
            if kind is not Kind.CONTROL:
                found.setdefault(name.rpartition(".")[0], []).append(name)
            if kind is Kind.TIMED and control(name) in self.benchmarks:
                found[name.rpartition(".")[0]].append(control(name))
        return found

    @cached_property
    def dtypes(self) -> dict[str, frozenset[str]]:
        """Kernel -> the dtypes that it is meant for."""
        found: dict[str, frozenset[str]] = {}
        for sweep in self.counted:
            for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
                found[kernel] = found.get(kernel, frozenset()) | set(map(str, sweep.axes["dtype"]))
        return found


#: What the benchmarks of a project of kernelwatch's `watch` have declared in this process.
_handed: list[Suite] = []


def hand_over(one: Suite) -> None:
    """Make a suite this process's, before any that settings name."""
    _handed[:] = [one]
    current.cache_clear()


@cache
def current() -> Suite:
    """Return the project's suite. Raises KernelwatchError where none is named, SuiteError where its module fails."""
    if _handed:
        return _handed[-1]
    where = settings.suite()
    module, _, name = where.partition(":")
    found = getattr(_imported(module), name, None)
    if not isinstance(found, Suite):
        raise KernelwatchError(
            f"{where!r} is no suite; pyproject.toml in {ROOT} must name one, as "
            '[tool.kernelwatch] suite = "benchmarks.suite:SUITE"'
        )
    return found


def _imported(module: str) -> Any:
    """Import a module of the checkout's suite; of all else, an old commit's stands before the checkout's."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    try:
        _pin(module.partition(".")[0])
        return importlib.import_module(module)
    except Exception as error:  # it runs a user's code
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            return None
        raise SuiteError(
            f"{_place(error)}: {type(error).__name__}: {one_line(getattr(error, 'msg', error))}"
        ) from error


def _pin(package: str) -> None:
    """Import a package from the checkout, though a commit may have one of that name in the working folder."""
    file = ROOT / package / "__init__.py"
    if package not in sys.modules and file.is_file():
        spec = importlib.util.spec_from_file_location(package, file)
        assert spec is not None, "it is a file of Python"
        assert spec.loader is not None, "it is a file of Python"
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])


def _place(error: Exception) -> str:
    """The last line of the project's own that an error passed, or that Python cannot read."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    passed = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    library = Path(__file__).parents[1]
    own = [each for each in passed if not Path(each.filename).is_relative_to(library)]
    in_project = [each for each in own if any(map(Path(each.filename).is_relative_to, (ROOT, sources.checkout())))]
    place = (in_project or own or passed)[-1]
    return f"{place.filename}:{place.lineno}"


def kernel(name: str) -> Kernel:
    """Return the form of a kernel that the commit that is measured has. Raises as `declared_kernel`."""
    return declared_kernel(name).form


def declared_kernel(name: str) -> Kernel:
    """Return the kernel of that name as it is declared. Raises UnknownKernelError where the commit has none."""
    known = current().kernels()
    if name not in known:
        allowed = f"allowed are {', '.join(known)}" if known else "its package has no kernels of kernelwatch's"
        raise UnknownKernelError(f"kernel {name!r} is not known; {allowed}")
    return known[name]


def folder() -> Path:
    """Return the folder of the code that is measured: of the installed commit's package, or else its checkout."""
    if not settings.package():
        return sources.checkout()
    found = importlib.import_module(settings.package()).__file__
    assert found is not None, "it is a package of files"
    return Path(found).parent


def time(sweep: Sweep) -> str:
    """Return the name of a timed sweep's benchmark."""
    return f"{sweep.module}.{sweep.name}.time_{'isolated' if sweep.isolated else 'back_to_back'}"


#: The benchmark that holds a timed one's times in copies of the same bytes, by its name.
control = control_name


def metrics(sweep: Sweep) -> list[str]:
    """Return the metrics of a counted sweep."""
    return [name for name, metric in METRICS.items() if sweep.shared or not metric.shared]


def _once(told: Callable[[str, Mapping[str, object]], T]) -> Callable[[str, Mapping[str, object]], T]:
    """Work out once what is told of a configuration: who reviews a history asks for it at every commit."""

    @cache
    def known(_suite: int | None, benchmark: str, *params: tuple[str, object]) -> T:
        return told(benchmark, dict(params))

    @wraps(told)
    def wrapped(benchmark: str, params: Mapping[str, object]) -> T:
        return known(_identity(), benchmark, *params.items())

    return wrapped


def _identity() -> int | None:
    """Which suite it is; None where there is none."""
    try:
        return id(current())
    except KernelwatchError:
        return None


@_once
def launch(benchmark: str, params: Mapping[str, object]) -> Launch | None:
    """Return what a configuration launches; None where its parameters do not tell.

    Results may be older or newer than the suite, so what it does not know is no error: then the parameters alone tell.
    """
    try:
        if benchmark in current().benchmarks:
            return current().benchmarks[benchmark][1].launch(params)
        said = read(params)
        return Launch(**said) if "kernel" in said else None
    except (ValueError, KernelwatchError):
        return None


def _asked(benchmark: str, params: Mapping[str, object], ask: Callable[[Kernel, Launch], T]) -> T | None:
    """Ask a configuration's kernel; None where it is another suite's, or takes other arguments or dtypes."""
    found = launch(benchmark, params)
    try:
        return None if found is None else ask(declared_kernel(found.kernel), found)
    except (TypeError, KernelwatchError):
        return None


@_once
def useful_bytes(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the bytes that a configuration must move; None where they are not known here."""
    found = launch(benchmark, params)
    with suppress(TypeError):  # it takes other arguments
        if found is not None and found.kernel == matrix_copy.NAME:
            return matrix_copy.useful_bytes(found.dtype, **found.arguments)
    return _asked(benchmark, params, lambda kernel, one: kernel.useful_bytes(one.dtype, **one.arguments))


@_once
def flops(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the floating-point operations that a configuration must do; None where there are none, or not known."""
    return _asked(benchmark, params, lambda kernel, one: kernel.flops(**one.arguments)) or None


@_once
def verified(benchmark: str, params: Mapping[str, object]) -> bool:
    """Return whether what a configuration's kernel writes is compared with a reference; True where nobody knows."""
    return _asked(benchmark, params, lambda kernel, _: kernel.reference is not None) is not False


@_once
def code_name(benchmark: str, params: Mapping[str, object]) -> str | None:
    """Return the name of a configuration's machine code in `cubins.jsonl`; None where it is no kernel's to measure."""
    found = launch(benchmark, params)
    return None if found is None or found.kernel == matrix_copy.NAME else found.code_name
