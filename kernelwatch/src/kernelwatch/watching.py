"""What a project writes to have its kernels watched: `watch` makes asv's classes of a kernel and its sweep."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, cast

from kernelwatch import settings, suite
from kernelwatch.asv.sweep import Sweep
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import DTYPE, FLAGS
from kernelwatch.suite import Suite

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
    title = title or kernel.name
    _KERNELS[kernel.name] = kernel
    _SWEEPS[called] = Sweep(called, title, cast(Any, whole), kernel=kernel.name)
    for each, is_isolated in ((called, False), (f"Isolated{called}", True)):
        _TIMED[each] = Sweep(each, f"{title}, DRAM", cast(Any, large), kernel=kernel.name, isolated=is_isolated)
    made = _suite(archs)
    suite.hand_over(made)
    from kernelwatch.asv import compiled, counted  # noqa: PLC0415 -- they read the suite
    from kernelwatch.asv import timed as times  # noqa: PLC0415

    times.make()
    found = {"SUITE": made, **counted.classes(), **compiled.classes()}
    for suffix, of in (("Times", times.CLASSES), ("Ratios", times.CONTROLS)):
        found |= {f"{each.__name__}{suffix}": each for each in of.values()}
    return found


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


def _suite(archs: Sequence[str]) -> Suite:
    every = (*_SWEEPS.values(), *_TIMED.values())
    axes = {
        "kernel": tuple(_KERNELS),
        "dtype": tuple(dict.fromkeys(value for each in every for value in each.axes["dtype"])),
        "flags": tuple(dict.fromkeys(value for each in every for value in each.axes["flags"])),
        "arch": tuple(archs),
    }
    kernels = cast(Any, dict(_KERNELS))
    return Suite(
        kernels=lambda: kernels,
        timed=tuple(_TIMED.values()),
        copy=None,
        counted=tuple(_SWEEPS.values()),
        compiled=Sweep("Compiled", "Compiled", axes, module="track_compiled"),
    )
