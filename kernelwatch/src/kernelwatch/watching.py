"""What a project writes to have its kernels watched: `watch` makes asv's classes of a kernel and its sweep."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, cast

import kernelwatch.benchmarks as kw
from kernelwatch import settings, suite
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import DTYPE, FLAGS
from kernelwatch.suite import Suite
from kernelwatch.sweep import Sweep

#: The architectures that kernels are compiled for.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: What this process's benchmarks have declared: kernels by name, and what is counted of them.
_KERNELS: dict[str, Kernel] = {}
_SWEEPS: dict[str, Sweep] = {}

#: Where each kernel was watched first. A file that is imported anew says the same of the same lines.
_WHERE: dict[str, str] = {}
_TIMED: dict[str, Sweep] = {}


def watch(
    kernel: Kernel,
    axes: Mapping[str, Sequence[str | int | float]],
    *,
    name: str = "",
    title: str = "",
    archs: Sequence[str] = ARCHS,
    timed: Mapping[str, Sequence[str | int | float]] | None = None,
) -> dict[str, Any]:
    """Make asv's classes of a kernel: what is counted, compiled and, on a GPU, timed of it.

    Call it in `benchmarks/kernels.py` alone, once a kernel or more often, as
    ``globals().update(watch(kernel, {"n": [1000]}))``. Benchmarks are called `track_counted.NAME.track_...`,
    `track_compiled.Compiled.track_...`, `time_kernel.NAME.time_back_to_back`, `time_kernel.IsolatedNAME.time_isolated`
    and, as multiples of a copy's time, `track_control...`: names under which results are stored for ever.

    Parameters
    ----------
    kernel : Kernel
        What is watched.
    axes : mapping
        What the launch gives, by name, and perhaps "dtype" and "flags" -> values. Their order is that of the results.
    name : str
        The class's; the kernel's in camel case if not given. Needed for a second sweep of a kernel.
    title : str
        What a person calls it; the kernel's name if not given.
    archs : sequence of str
        The architectures to compile for.
    timed : mapping, optional
        Other values of some axes for what is timed, which may be larger than what a CPU can count.

    Raises
    ------
    ArgumentError
        The kernel takes other names than the axes have, another kernel has its name, under which results are stored,
        or it is watched in another file of the benchmarks.
    """
    given = set(axes) - {"dtype", "flags"}
    if given != set(kernel.parameters):
        wanted = ", ".join(kernel.parameters) or "no axes"
        raise ArgumentError(f"{kernel.name} takes {wanted}; the axes are {', '.join(sorted(given)) or 'none'}")
    called = name or "".join(part.capitalize() for part in re.split(r"\W|_", kernel.name))
    if called == "Compiled" or (called in _SWEEPS and _SWEEPS[called].kernel != kernel.name):
        raise ArgumentError(f"{called} is the name of other benchmarks; give watch a name")
    _refuse_other_places(kernel, sys._getframe(1))
    whole = {key: tuple(values) for key, values in axes.items()}
    whole.setdefault("dtype", (DTYPE,))
    whole.setdefault("flags", (FLAGS,))
    large = whole | {key: tuple(values) for key, values in (timed or {}).items()}
    if large.keys() != whole.keys():
        raise ArgumentError(
            f"{kernel.name}: what is timed has the axes {', '.join(large)}; {', '.join(whole)} are known"
        )
    _KERNELS[kernel.name] = kernel
    common: dict[str, Any] = {"kernel": kernel.name, "__module__": sys._getframe(1).f_globals["__name__"]}

    def made(base: type[kw.Benchmark], name: str, module: str, of: Mapping[str, Any], **more: Any) -> Any:
        axes = {"params": tuple(of.values()), "param_names": tuple(of)} if of else {}
        return type(name, (base,), {**common, "module": module, **axes, **more})

    title = title or kernel.name
    counted = made(kw.CountedWithShared, called, "track_counted", whole, title=title)
    back_to_back = made(kw.BackToBack, called, "time_kernel", large, title=f"{title}, DRAM")
    isolated = made(kw.Isolated, f"Isolated{called}", "time_kernel", large, title=f"{title}, DRAM")
    _SWEEPS[called] = counted.sweep
    _TIMED.update({called: back_to_back.sweep, f"Isolated{called}": isolated.sweep})
    compiled = made(kw.Compiled, "Compiled", "track_compiled", _compiled_axes(archs), title="Compiled")
    kernels = cast(Any, dict(_KERNELS))
    handed_over = Suite(
        kernels=lambda: kernels,
        timed=tuple(_TIMED.values()),
        copy=None,
        counted=tuple(_SWEEPS.values()),
        compiled=compiled.sweep,
    )
    suite.hand_over(handed_over)
    found: dict[str, Any] = {"SUITE": handed_over, called: counted, "Compiled": compiled}
    timed_ones = (back_to_back, isolated)
    found |= {f"{one.__name__}Times": one for one in timed_ones}
    return found | {
        f"{one.__name__}Ratios": made(kw.Control, one.__name__, "track_control", {}, timed=one) for one in timed_ones
    }


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


def _compiled_axes(archs: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return what is compiled of all that is watched."""
    every = (*_SWEEPS.values(), *_TIMED.values())
    return {
        "kernel": tuple(_KERNELS),
        "dtype": tuple(dict.fromkeys(value for each in every for value in each.axes["dtype"])),
        "flags": tuple(dict.fromkeys(value for each in every for value in each.axes["flags"])),
        "arch": tuple(archs),
    }
