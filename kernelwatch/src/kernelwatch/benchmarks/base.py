"""What all benchmarks of kernels share: a class is a sweep, which asv finds by the names that results have for ever."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from kernelwatch.suite.sweep import Sweep

F = TypeVar("F", bound=Any)

#: asv's names of what it measures.
_MEASURED = re.compile(r"(time|track)_.+")


class Benchmark:
    """Launches of one or several kernels, over axes. A subclass that has `params` is one of asv's benchmarks.

    Its docstring begins with the title that people read. Everything else is a class attribute.

    Parameters
    ----------
    params, param_names : sequence
        The axes, as asv has them: values, and names such as "kernel", "dtype", "flags", "rows x columns", or any
        argument. asv finds stored values by these: append and reorder as you like, but another axis or another name
        begins a new history.
    kernel : str
        The kernel where it is no axis.
    fixed : dict of str to int
        Arguments that are no axis.
    shown : dict
        The value that summaries show, for some axes. For all others it is the first.
    note : str
        What readers of its numbers should know.
    module : str
        The module in the names of stored results. Of times, it is the one that the class stands in if not given.
    title : str
        In place of the docstring's first line.
    in_l2, isolated : bool
        Of what is timed: whether launches find their data in the L2 cache, and whether each runs by itself.
    l2_fetch_bytes : int
        Of what is timed: the bytes that a read which misses the L2 cache fetches from DRAM, 32, 64 or 128; 0 leaves
        that to the driver. It is ``cudaLimitMaxL2FetchGranularity`` of a context of its own.
    shared : bool
        Of what is counted: whether kernels use shared memory, which has metrics of its own.
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
        """Make the sweep, and name what asv measures."""
        super().__init_subclass__()
        if not cls.params:
            return
        cls.title = cls.title or str(cls.__doc__).partition("\n")[0].rstrip(".")
        cls.module = cls.module or cls.__module__.rpartition(".")[2]
        cls.sweep = cls.made_sweep()
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if _MEASURED.fullmatch(name):
                setattr(cls, name, cls._named(name, method))

    @classmethod
    def made_sweep(cls) -> Sweep:
        """Return the launches that the class's attributes describe."""
        told = {each.name: getattr(cls, each.name) for each in fields(Sweep) if hasattr(cls, each.name)}
        axes = {name: tuple(values) for name, values in zip(cls.param_names, cls.params, strict=True)}
        return Sweep(**{**told, "name": cls.__name__, "axes": axes})

    @classmethod
    def _named(cls, name: str, method: Any) -> FunctionType:
        """Return a copy of a method that asv calls by its name in this class, and people by its title."""
        made = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
        made.__dict__.update(method.__dict__)
        made.__doc__, made.__module__, made.__qualname__ = method.__doc__, cls.__module__, f"{cls.__name__}.{name}"
        made.benchmark_name = f"{cls.module}.{cls.__name__}.{name}"  # type: ignore[attr-defined]
        made.pretty_name = cls.pretty(method)  # type: ignore[attr-defined]
        return made

    @classmethod
    def pretty(cls, method: Any) -> str:
        """Return what a person calls the numbers of a method."""
        return f"{cls.title}: {method._what}"

    def point(self, params: Sequence[Any]) -> dict[str, Any]:
        """Return a configuration's parameters by their names."""
        return dict(zip(self.param_names, params, strict=True))


def measures(what: str, unit: str = "") -> Callable[[F], F]:
    """Say of a method of asv's what its numbers are, and their unit."""

    def decorated(method: F) -> F:
        method._what = what  # asv would keep it without the underscore
        if unit:
            method.unit = unit
        return method

    return decorated


def found(module: Any) -> Iterator[type[Benchmark]]:
    """Yield the benchmarks that a module defines, in its order, as asv finds them."""
    for name, one in vars(module).items():
        if name.startswith("_"):
            continue
        if isinstance(one, type) and issubclass(one, Benchmark) and one.params and one.__module__ == module.__name__:
            yield one
