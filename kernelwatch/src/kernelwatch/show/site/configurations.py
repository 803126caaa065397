"""What the pages know of each benchmark: its axes, and what turns its values into what they show."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelwatch import suite
from kernelwatch.errors import KernelwatchError
from kernelwatch.kernel import Row, dtypes
from kernelwatch.kernel.launch import FLAGS, read
from kernelwatch.store.results import History
from kernelwatch.suite import Kind

#: Axes that benchmarks of any kernel may have; of the others, one tells the places of a figure apart.
COMMON = ("dtype", "flags", "arch")

#: Of each counted benchmark, the values of the newest commit that has any: by the texts of its parameters.
Counted = Mapping[str, Mapping[frozenset[tuple[str, str]], float]]


def described(history: History, benchmark: str, counted: Counted) -> dict[str, Any]:
    """Return a benchmark's title, unit, kind and axes, and of each axis the value that tells most.

    `lines` is the axis of what a figure compares, kernels or else dtypes, and `along` the one of its places; both are
    null where there is no such axis. `kernel` is the only one, where no axis names it. `control` is the benchmark of
    the same times in copies. For times also what each configuration does, in the order of the axes: `useful_bytes` is
    null where GB/s would mean nothing, `flops` where GFLOP/s would, `predicted_share` where nothing is predicted.
    """
    axes = history.axes(benchmark)
    kind, sweep = suite.BENCHMARKS.get(benchmark, (None, None))
    lines = next((axis for axis in axes if names_kernels(axis, axes)), "dtype" if "dtype" in axes else None)
    own = [axis for axis in axes if axis not in (*COMMON, lines)]
    title = history.title(benchmark)
    shown: dict[str, Any] = {
        "name": benchmark,
        "title": title,
        "family": re.sub(r"(, counted)?:.*$", "", title),
        "unit": history.unit(benchmark),
        "type": history.type(benchmark),
        "kind": kind and kind.value,
        "axes": axes,
        "chosen": {axis: str(value) for axis, value in sweep.chosen().items()} if sweep else {},
        "note": sweep.note if sweep else "",
        "lines": lines,
        "own": own,
        "along": max(own, key=lambda axis: len(axes[axis]), default=None),
        "kernel": sweep.kernel if sweep else "",
        "control": suite.control(benchmark) if kind is Kind.TIMED else None,
        "plain_copy": bool(sweep and sweep is suite.DEVICE_COPY),
        "in_l2": bool(sweep and sweep.in_l2),
        "isolated": bool(sweep and sweep.isolated),
    }
    if shown["type"] == "time":
        every = combinations(axes)
        shown["useful_bytes"] = [suite.useful_bytes(benchmark, params) for params in every]
        shown["flops"] = [suite.flops(benchmark, params) for params in every]
        pairs = zip(shown["flops"], shown["useful_bytes"], strict=True)
        shown["computes"] = any((flops or 0) > (moved or 0) for flops, moved in pairs)
        shown["predicted_share"] = [predicted_share(benchmark, params, counted) for params in every]
    return shown


def names_kernels(axis: str, axes: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the values of an axis say which kernel is launched."""
    try:
        return any("kernel" in read({axis: value}) for value in axes[axis])
    except (ValueError, KernelwatchError):  # results may be older or newer than the suite
        return False


def unverified() -> list[str]:
    """Return the kernels of the suite whose outputs nothing is compared with."""
    return [name for name, kernel in suite.current().kernels().items() if kernel.says is None]


def combinations(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return the parameters of every configuration, the last axis varying fastest, as asv stores them."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def counted(history: History) -> dict[str, Any]:
    """Return of every benchmark that a prediction needs when a machine counted it last, and each value."""
    found = {}
    for name in (each for names in map(_counted_names, suite.BENCHMARKS) for each in names):
        newest = history.newest(name) if name in history.benchmarks("track") else None
        if newest is not None:
            values = [
                [list(point.params.items()), point.value]
                for point in history.points(newest, name)
                if point.value is not None
            ]
            found[name] = [newest.date, values]
    return found


def newest(machines: Iterable[Mapping[str, Any]]) -> Counted:
    """Return what was counted last of every benchmark, on any machine: all count the same."""
    last: dict[str, Any] = {}
    for name, (date, values) in (each for found in machines for each in found.items()):
        if name not in last or date >= last[name][0]:
            last[name] = (date, values)
    return {
        name: {frozenset(map(tuple, params)): value for params, value in values} for name, (_, values) in last.items()
    }


def _counted_names(benchmark: str) -> list[str]:
    """The counts that a benchmark is predicted from: of one kernel, along an argument."""
    kind, sweep = suite.BENCHMARKS.get(benchmark, (None, None))
    if kind is not Kind.TIMED or sweep is None or not sweep.kernel or sweep is suite.DEVICE_COPY:
        return []
    return [f"track_counted.{sweep.name}.track_{way}_sectors" for way in ("load", "store")]


def predicted_share(benchmark: str, params: Mapping[str, str], counted: Counted) -> float | None:
    """Return what 32-byte sectors leave of the bandwidth: those that the bytes fill over those that are moved.

    Both are of a request, one load or store of 32 elements: they fill as many sectors as an element has bytes. A kernel
    loads as many elements as it has inputs for each that it stores.

    None where nothing is predicted: for benchmarks of several kernels, for kernels that may load an element more than
    once, and where no stored run has counted the launch.
    """
    found = suite.launch(benchmark, params)
    kernel = suite.current().kernels().get(found.kernel) if found else None
    if found is None or not isinstance(kernel, Row):
        return None
    moved = []
    for name in _counted_names(benchmark):
        axes = next(iter(counted.get(name, ())), frozenset())
        wanted = {**params, "flags": FLAGS}  # those of ptxas do not change what is counted
        moved.append(counted.get(name, {}).get(frozenset((axis, wanted.get(axis, "")) for axis, _ in axes)))
    if None in moved or not moved:
        return None
    load, store = (each or 0.0 for each in moved)
    inputs = len(kernel.arrays(**found.arguments)) - 1
    total = inputs * load + store
    return (inputs + 1) * dtypes.get(found.dtype).itemsize / total if total else None
