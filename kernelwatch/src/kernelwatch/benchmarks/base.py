"""The base class of all kernel benchmarks.

Results are stored under the names of a class, its methods and its axes. So these names are permanent.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from kernelwatch.errors import ArgumentError
from kernelwatch.suite.sweep import Sweep

F = TypeVar("F", bound=Any)

#: Pattern of the names of methods that asv measures.
_MEASURED_NAME = re.compile(r"(time|track)_.+")


class Benchmark:
    """Launches of one or several kernels, for all values of the axes. A subclass with `params` is a benchmark of asv.

    The first line of the subclass's own docstring is the title. Everything else is a class attribute.

    Parameters
    ----------
    params, param_names : sequence
        The axes, as in asv: their values and names, such as "kernel", "dtype", "flags", "rows x columns", or any
        argument. asv finds stored values by these. You may append and reorder values, but another axis or another name
        begins a new history.
    kernel : str
        The kernel, if it is not an axis.
    fixed : dict of str to int
        Arguments that are not axes.
    shown : dict
        Axis -> its value in summaries; the default is the first value.
    note : str
        A remark for readers of the results.
    module : str
        The module in the names of stored results; for times, by default the class's own module.
    title : str
        Replaces the docstring's first line. It is not inherited. Without both, the kernel or the class is the title.
    in_l2, isolated : bool
        For times: whether launches find their data in the L2 cache, and whether each runs alone on the GPU.
    l2_fetch_bytes : int
        For times: the bytes that the L2 cache fetches from DRAM on a miss: 32, 64 or 128; 0 for the driver's default.
        The launches run in a separate context with this ``cudaLimitMaxL2FetchGranularity``.
    shared : bool
        For counts: whether kernels use shared memory, which has its own metrics.
    """

    params: ClassVar[Sequence[Sequence[Any]]] = ()
    param_names: ClassVar[Sequence[str]] = ()
    kernel: ClassVar[str] = ""
    fixed: ClassVar[Mapping[str, int]] = {}
    shown: ClassVar[Mapping[str, str | int]] = {}
    note: ClassVar[str] = ""
    module: ClassVar[str] = ""
    title: ClassVar[str] = ""
    sweep: ClassVar[Sweep]

    def __init_subclass__(cls) -> None:
        """Create the sweep, and name the methods that asv measures."""
        super().__init_subclass__()
        if not cls.params:
            return
        own_title = cls.__dict__.get("title") or cls.__doc__ or cls.kernel or cls.__name__
        cls.title = own_title.partition("\n")[0].rstrip(".")
        cls.module = cls.module or cls.__module__.rpartition(".")[2]
        cls.sweep = cls.make_sweep()
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if _MEASURED_NAME.fullmatch(name):
                setattr(cls, name, cls._copy_method(name, method))

    @classmethod
    def make_sweep(cls) -> Sweep:
        """Return the sweep that the class's attributes describe."""
        attributes = {field.name: getattr(cls, field.name) for field in fields(Sweep) if hasattr(cls, field.name)}
        return Sweep(**{**attributes, "name": cls.__name__, "axes": cls.read_axes()})

    @classmethod
    def read_axes(cls) -> dict[str, tuple[Any, ...]]:
        """Return axis -> its values. Raises ArgumentError unless `params` has a list for each of `param_names`."""
        if isinstance(cls.param_names, str) or not all(isinstance(name, str) for name in cls.param_names):
            raise ArgumentError(f"class {cls.__name__}: param_names needs a list of names; given: {cls.param_names!r}")
        axes = dict(zip(cls.param_names, map(list_values, cls.params), strict=False))
        if not len(axes) == len(cls.params) == len(cls.param_names) or not all(axes.values()):
            names = ", ".join(cls.param_names) or "none"
            needed = f"a list of values for each of param_names ({names})"
            raise ArgumentError(f"class {cls.__name__}: params needs {needed}; given: {cls.params!r}")
        return axes

    @classmethod
    def _copy_method(cls, name: str, method: Any) -> FunctionType:
        copy = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
        copy.__dict__.update(method.__dict__)
        copy.__doc__, copy.__module__, copy.__qualname__ = method.__doc__, cls.__module__, f"{cls.__name__}.{name}"
        copy.benchmark_name = f"{cls.module}.{cls.__name__}.{name}"  # type: ignore[attr-defined]
        copy.pretty_name = cls.format_title(method)  # type: ignore[attr-defined]
        return copy

    @classmethod
    def format_title(cls, method: Any) -> str:
        """Return the title of a method's numbers, which asv's pages show."""
        return f"{cls.title}: {method._title}"

    def name_params(self, params: Sequence[Any]) -> dict[str, Any]:
        """Return parameter -> value of a configuration, from its values in the order of `param_names`."""
        return dict(zip(self.param_names, params, strict=True))


def list_values(values: object) -> tuple[Any, ...]:
    """Return the values of an axis; empty if they are not a list or another iterable."""
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else ()


def measures(title: str, unit: str = "") -> Callable[[F], F]:
    """Return a decorator that sets the title and the unit of a method's numbers."""

    def decorate(method: F) -> F:
        method._title = title  # without the underscore, asv would store it
        if unit:
            method.unit = unit
        return method

    return decorate


def iter_benchmarks(module: Any) -> Iterator[type[Benchmark]]:
    """Yield the benchmark classes that a module defines, in the order in which asv finds them."""
    for name, value in vars(module).items():
        is_benchmark = isinstance(value, type) and issubclass(value, Benchmark) and value.params
        if is_benchmark and value.__module__ == module.__name__ and not name.startswith("_"):
            yield value
