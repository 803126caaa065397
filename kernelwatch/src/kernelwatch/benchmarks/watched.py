"""What a project writes to have its kernels watched: a class for each, a subclass of `Watched`."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar, cast

import kernelwatch.benchmarks as kw
from kernelwatch.config import settings
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import DTYPE, FLAGS
from kernelwatch.suite import registry
from kernelwatch.suite.registry import Suite
from kernelwatch.suite.sweep import Sweep

#: The architectures that kernels are compiled for.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: What this process's benchmarks have declared: kernels by name, and what is counted of them.
_KERNELS: dict[str, Kernel] = {}
_SWEEPS: dict[str, Sweep] = {}

#: Where each kernel was watched first. A file that is imported anew says the same of the same lines.
_WHERE: dict[str, str] = {}
_TIMED: dict[str, Sweep] = {}


class Watched(kw.CountedWithShared):
    """A kernel that is watched: a subclass is what is counted of it. What is compiled and timed stands beside it.

    Write subclasses in `benchmarks/kernels.py` alone. Benchmarks are called `track_counted.NAME.track_...`,
    `track_compiled.Compiled.track_...`, `time_kernel.NAME.time_back_to_back`, `time_kernel.IsolatedNAME.time_isolated`
    and, as multiples of a copy's time, `track_control...`. NAME is the class's. Results are stored under these names.

    Parameters
    ----------
    kernel : Kernel
        What is watched.
    param_names, params : sequence
        The axes: what the launch gives, and perhaps "dtype" and "flags". Their order is that of the results.
    archs : sequence of str
        The architectures to compile for.
    timed : mapping
        Other values of some axes for what is timed, which may be larger than what a CPU can count.

    Raises
    ------
    ArgumentError
        The kernel takes other names than the axes have, another kernel has its name, under which results are stored,
        or it is watched in another file of the benchmarks.
    """

    module = "track_counted"
    archs: ClassVar[Sequence[str]] = ARCHS
    timed: ClassVar[Mapping[str, Sequence[str | int | float]]] = {}
    #: What a module of benchmarks has of it: its classes, and the suite of all that was watched until now.
    beside: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, frame: FrameType | None = None) -> None:
        """Make what stands beside the class; put it into the module, unless the frame of `watch` is given."""
        kernel, name, caller = cast(Kernel, cls.kernel), cls.__name__, frame or sys._getframe(1)
        axes = {key: tuple(values) for key, values in zip(cls.param_names, cls.params, strict=True)}
        given = set(axes) - {"dtype", "flags"}
        if given != set(kernel.parameters):
            wanted = ", ".join(kernel.parameters) or "no axes"
            raise ArgumentError(f"{kernel.name} takes {wanted}; the axes are {', '.join(sorted(given)) or 'none'}")
        if name == "Compiled" or (name in _SWEEPS and _SWEEPS[name].kernel != kernel.name):
            raise ArgumentError(f"{name} is the name of other benchmarks; give another one")
        _refuse_other_places(kernel, caller)
        axes = {**axes, "dtype": axes.get("dtype", (DTYPE,)), "flags": axes.get("flags", (FLAGS,))}
        large = axes | {key: tuple(values) for key, values in cls.timed.items()}
        if large.keys() != axes.keys():
            raise ArgumentError(
                f"{kernel.name}: what is timed has the axes {', '.join(large)}; {', '.join(axes)} are known"
            )
        _KERNELS[kernel.name] = kernel
        cls.__module__ = caller.f_globals["__name__"]
        cls.kernel, cls.param_names, cls.params = kernel.name, tuple(axes), tuple(axes.values())
        cls.title = cls.title or (cls.__doc__ or kernel.name).partition("\n")[0].rstrip(".")
        super().__init_subclass__()
        cls.beside = {"SUITE": None, name: cls, **_beside(cls, large)}
        if frame is None:
            caller.f_globals.update(cls.beside)


def _beside(cls: type[Watched], large: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    def made(base: type[kw.Benchmark], name: str, module: str, axes: Mapping[str, Any], **more: Any) -> Any:
        places = {"params": tuple(axes.values()), "param_names": tuple(axes)} if axes else {}
        common = {"kernel": cls.kernel, "__module__": cls.__module__, "module": module}
        return type(name, (base,), {**common, **places, **more})

    name, title = cls.__name__, f"{cls.title}, DRAM"
    back_to_back = made(kw.BackToBack, name, "time_kernel", large, title=title)
    isolated = made(kw.Isolated, f"Isolated{name}", "time_kernel", large, title=title)
    _SWEEPS[name] = cls.sweep
    _TIMED.update({name: back_to_back.sweep, f"Isolated{name}": isolated.sweep})
    every = (*_SWEEPS.values(), *_TIMED.values())
    swept = {
        axis: tuple(dict.fromkeys(value for one in every for value in one.axes[axis])) for axis in ("dtype", "flags")
    }
    axes = {"kernel": tuple(_KERNELS), **swept, "arch": tuple(cls.archs)}
    compiled = made(kw.Compiled, "Compiled", "track_compiled", axes, title="Compiled")
    kernels = cast(Any, dict(_KERNELS))
    handed_over = Suite(
        kernels=lambda: kernels,
        timed=tuple(_TIMED.values()),
        copy=None,
        counted=tuple(_SWEEPS.values()),
        compiled=compiled.sweep,
    )
    registry.register_suite(handed_over)
    both = (back_to_back, isolated)
    return {
        "SUITE": handed_over,
        "Compiled": compiled,
        **{f"{one.__name__}Times": one for one in both},
        **{f"{one.__name__}Ratios": made(kw.Control, one.__name__, "track_control", {}, timed=one) for one in both},
    }


def watch(kernel: Kernel, axes: Mapping[str, Sequence[str | int | float]], *, name: str = "", **more: Any) -> Any:
    """Make the classes of a kernel without writing one: ``globals().update(watch(kernel, {"n": [1000]}))``.

    Parameters
    ----------
    kernel : Kernel
        What is watched.
    axes : mapping
        Names of axes -> values.
    name : str
        The class's; the kernel's in camel case if not given. Needed for a second sweep of a kernel.
    **more
        `title`, `archs` and `timed` of `Watched`, with its errors.
    """
    called = name or "".join(part.capitalize() for part in re.split(r"\W|_", kernel.name))
    held = {"kernel": kernel, "param_names": tuple(axes), "params": tuple(axes.values()), "title": kernel.name, **more}
    made: Any = types.new_class(called, (Watched,), {"frame": sys._getframe(1)}, lambda names: names.update(held))
    return made.beside


def _refuse_other_places(kernel: Kernel, caller: FrameType) -> None:
    where, first = f"{caller.f_code.co_filename}:{caller.f_lineno}", _WHERE.get(kernel.name)
    if first not in (None, where) and _KERNELS[kernel.name] is not kernel:
        raise ArgumentError(f"two kernels are called {kernel.name}, at {first} and at {where}; rename the newer one")
    suite_module = settings.suite().partition(":")[0]
    called = caller.f_globals.get("__name__", "")
    if called.startswith(f"{settings.suite_folder()}.") and called != suite_module:
        raise ArgumentError(
            f"{kernel.name} is watched in {called}; declare it there, import it in {suite_module}, and call watch there"
        )
    _WHERE.setdefault(kernel.name, where)
