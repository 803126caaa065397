"""The base class `Watched`: a project derives one class from it for each watched kernel."""

import re
import sys
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar, cast

import kernelwatch.benchmarks as kw
from kernelwatch.benchmarks.base import list_values
from kernelwatch.config import settings
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import DTYPE, FLAGS
from kernelwatch.suite import registry
from kernelwatch.suite.registry import Suite
from kernelwatch.suite.sweep import Sweep

#: The architectures for which kernels are compiled by default.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: Declarations in this process: kernels by name; counted and timed sweeps by the class's name.
_KERNELS: dict[str, Kernel] = {}
_SWEEPS: dict[str, Sweep] = {}
_TIMED: dict[str, Sweep] = {}

#: Kernel -> file and line of its first class, to refuse a second kernel of this name. If a file is imported again, its
#: file and line are the same.
_FIRST_PLACES: dict[str, str] = {}


class Watched(kw.CountedWithShared):
    """A watched kernel: a subclass is the kernel's counted benchmark, and creates the compiled and timed ones.

    Write subclasses only in the suite's module, by default `benchmarks/kernels.py`. The benchmarks are called
    `track_counted.NAME.track_...`, `track_compiled.Compiled.track_...`, `time_kernel.NAME.time_back_to_back`,
    `time_kernel.IsolatedNAME.time_isolated` and, as multiples of a copy's time, `track_control...`. NAME is that of the
    class. Results are stored under these names.

    Parameters
    ----------
    kernel : Kernel
        The kernel to watch.
    param_names, params : sequence
        The axes: the launch's arguments, and optionally "dtype" and "flags". Results are stored in this order.
    archs : sequence of str
        The architectures to compile for. The class declared last decides for all kernels.
    timed : mapping
        Axis -> its values for times, if other than in `params`. Those values may be too large to count on a CPU.

    Raises
    ------
    ArgumentError
        The axes do not match the kernel's arguments, the lists in `params` or the axes in `timed`. Another kernel or
        another kernel's class has the same name. Or the class is in a file of the benchmarks other than the suite's
        module.
    """

    module = "track_counted"
    archs: ClassVar[Sequence[str]] = ARCHS
    timed: ClassVar[Mapping[str, Sequence[str | int | float]]] = {}
    #: Name -> object to define in the benchmark module: the kernel's classes, and the suite of all kernels so far.
    module_names: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, frame: FrameType | None = None) -> None:
        """Check the class, register its kernel, and set `module_names`.

        The names are those of the class, its timed classes with their copy ratios, SUITE, and one compiled class for
        all kernels. Define them in the module of the class statement; if `watch` passes its caller's `frame`, the
        caller does this.
        """
        kernel, name, caller = cast(Any, cls.kernel), cls.__name__, frame or sys._getframe(1)
        if not isinstance(kernel, Kernel):
            raise ArgumentError(f"class {name}: kernel needs a Kernel; given: {kernel!r}")
        axes = cls.read_axes()
        _check_axes(kernel, axes)
        _check_name(name, kernel.name)
        _check_place(kernel, caller)
        axes = {**axes, "dtype": axes.get("dtype", (DTYPE,)), "flags": axes.get("flags", (FLAGS,))}
        cls._check_settings(axes)
        timed_axes = axes | {axis: list_values(values) for axis, values in cls.timed.items()}
        _KERNELS[kernel.name] = kernel
        cls.__module__ = caller.f_globals["__name__"]
        # As in other benchmarks, `kernel` is the kernel's name from here on.
        cls.kernel, cls.param_names, cls.params = kernel.name, tuple(axes), tuple(axes.values())
        super().__init_subclass__()
        cls.module_names = {name: cls, **_make_benchmarks(cls, timed_axes)}
        if frame is None:
            caller.f_globals.update(cls.module_names)

    @classmethod
    def _check_settings(cls, axes: Collection[str]) -> None:
        """Raise ArgumentError if `archs` or `timed` is not valid."""
        name, timed = cls.__name__, cls.timed
        if not list_values(cls.archs):
            raise ArgumentError(f"class {name}: archs needs a list of architectures; given: {cls.archs!r}")
        if not isinstance(timed, Mapping) or not all(map(list_values, timed.values())):
            raise ArgumentError(f"class {name}: timed needs a list of values for each axis; given: {timed!r}")
        if unknown := ", ".join(sorted(timed.keys() - axes)):
            raise ArgumentError(f"class {name}: timed has the axis {unknown}; allowed are {', '.join(axes)}")


def _check_axes(kernel: Kernel, axes: Iterable[str]) -> None:
    """Raise ArgumentError unless the axes are a kernel's arguments, with or without dtype and flags."""
    extents = set(axes) - {"dtype", "flags"}
    if extents != set(kernel.parameters):
        expected, actual = (", ".join(names) or "no argument" for names in (kernel.parameters, sorted(extents)))
        advice = "give one axis for each argument"
        raise ArgumentError(f"{kernel.name} takes {expected}, but param_names has {actual}; {advice}")


def _check_name(name: str, kernel: str) -> None:
    """Raise ArgumentError if a class, or its isolated one, has the name of another benchmark."""
    for timed in (name, f"Isolated{name}"):
        if timed == "Compiled" or (timed in _TIMED and _TIMED[timed].kernel != kernel):
            raise ArgumentError(f"class {name}: another benchmark is called {timed}; rename the class")


def _make_benchmarks(cls: type[Watched], timed_axes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Register a new suite of all kernels declared so far; return the objects to define in the module, by name."""

    def make_class(base: type[kw.Benchmark], name: str, module: str, axes: Mapping[str, Any], **attributes: Any) -> Any:
        axis_attributes = {"params": tuple(axes.values()), "param_names": tuple(axes)} if axes else {}
        common = {"kernel": cls.kernel, "__module__": cls.__module__, "module": module}
        return type(name, (base,), {**common, **axis_attributes, **attributes})

    name, title = cls.__name__, f"{cls.title}, DRAM"
    back_to_back = make_class(kw.BackToBack, name, "time_kernel", timed_axes, title=title)
    isolated = make_class(kw.Isolated, f"Isolated{name}", "time_kernel", timed_axes, title=title)
    _SWEEPS[name] = cls.sweep
    _TIMED.update({name: back_to_back.sweep, f"Isolated{name}": isolated.sweep})
    sweeps = (*_SWEEPS.values(), *_TIMED.values())
    swept = {
        axis: tuple(dict.fromkeys(value for sweep in sweeps for value in sweep.axes[axis]))
        for axis in ("dtype", "flags")
    }
    axes = {"kernel": tuple(_KERNELS), **swept, "arch": tuple(cls.archs)}
    compiled = make_class(kw.Compiled, "Compiled", "track_compiled", axes, title="Compiled")
    kernels = cast(Any, dict(_KERNELS))
    suite = Suite(
        kernels=lambda: kernels,
        timed=tuple(_TIMED.values()),
        copy=None,
        counted=tuple(_SWEEPS.values()),
        compiled=compiled.sweep,
    )
    registry.register_suite(suite)
    timed_classes = (back_to_back, isolated)
    return {
        "SUITE": suite,
        "Compiled": compiled,
        **{f"{timed.__name__}Times": timed for timed in timed_classes},
        **{
            f"{timed.__name__}Ratios": make_class(kw.Control, timed.__name__, "track_control", {}, timed=timed)
            for timed in timed_classes
        },
    }


def watch(kernel: Kernel, axes: Mapping[str, Sequence[str | int | float]], *, name: str = "", **attributes: Any) -> Any:
    """Return the benchmark classes of a kernel by name, for a module that does not declare a class.

    Use it as in ``globals().update(watch(kernel, {"n": [1000]}))``.

    Parameters
    ----------
    kernel : Kernel
        The kernel to watch.
    axes : mapping
        Names of axes -> values.
    name : str
        Name of the class; by default the kernel's words, capitalized: RowSum for row_sum. Required for a second sweep.
    **attributes
        `title`, `archs` and `timed` of `Watched`.
    """
    class_name = name or "".join(part.capitalize() for part in re.split(r"\W|_", kernel.name))
    class_attributes = {
        "kernel": kernel,
        "param_names": tuple(axes),
        "params": tuple(axes.values()),
        "title": kernel.name,
        **attributes,
    }
    watched_class: Any = types.new_class(
        class_name, (Watched,), {"frame": sys._getframe(1)}, lambda names: names.update(class_attributes)
    )
    return watched_class.module_names


def _check_place(kernel: Kernel, caller: FrameType) -> None:
    """Raise ArgumentError if another kernel has this name, or the caller is a benchmark module other than the suite's.

    Else record the file and line of the kernel's first class.
    """
    place, first_place = f"{caller.f_code.co_filename}:{caller.f_lineno}", _FIRST_PLACES.get(kernel.name)
    if first_place not in (None, place) and _KERNELS[kernel.name] is not kernel:
        raise ArgumentError(
            f"two kernels are called {kernel.name}, at {first_place} and at {place}; rename the newer one"
        )
    suite_module = settings.suite_name().partition(":")[0]
    caller_module = caller.f_globals.get("__name__", "")
    if caller_module.startswith(f"{settings.suite_folder()}.") and caller_module != suite_module:
        raise ArgumentError(
            f"{kernel.name} is watched in {caller_module}, but the suite is {suite_module}; "
            "import the kernel there, and watch it there"
        )
    _FIRST_PLACES.setdefault(kernel.name, place)
