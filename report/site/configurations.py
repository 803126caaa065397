"""What the pages know of each benchmark: its axes, and what turns its values into what they show."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from benchmarks import suite
from benchmarks.instruments import transactions
from benchmarks.suite import Kind
from gpu_kernels import catalog
from gpu_kernels.errors import GpuKernelsError
from gpu_kernels.sweep import Launch
from ptxcount.errors import PtxError
from report.results import History


def described(history: History, benchmark: str) -> dict[str, Any]:
    """Return a benchmark's title, unit, kind and axes, and of each axis the value that tells most.

    For times also what each configuration does, in the order of the axes: `useful_bytes` is null where GB/s would mean
    nothing, `flops` where GFLOP/s would, `predicted_share` where nothing is predicted.
    """
    axes = history.axes(benchmark)
    kind, sweep = suite.BENCHMARKS.get(benchmark, (None, None))
    shown: dict[str, Any] = {
        "title": history.title(benchmark),
        "unit": history.unit(benchmark),
        "type": history.type(benchmark),
        "kind": kind and kind.value,
        "axes": axes,
        "chosen": {axis: str(value) for axis, value in sweep.chosen().items()} if sweep else {},
        "note": sweep.note if sweep else "",
        "plain_copy": sweep is suite.DEVICE_COPY,
        "in_l2": bool(sweep and sweep.in_l2),
        "isolated": bool(sweep and sweep.isolated),
    }
    if shown["type"] == "time":
        every = combinations(axes)
        shown["useful_bytes"] = [suite.useful_bytes(benchmark, params) for params in every]
        shown["flops"] = [suite.flops(benchmark, params) for params in every]
        shown["predicted_share"] = [predicted_share(benchmark, params) for params in every]
    return shown


def combinations(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return the parameters of every configuration, the last axis varying fastest, as asv stores them."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def predicted_share(benchmark: str, params: dict[str, str]) -> float | None:
    """Return what 32-byte sectors leave of the bandwidth: those that the bytes fill over those that are moved.

    None where nothing is predicted: where the kernel is not of the checkout, or its launch was not counted.
    """
    found = suite.launch(benchmark, params)
    if found is None or suite.BENCHMARKS.get(benchmark, (None, None))[0] is not Kind.TIMED:
        return None
    sizes = _counted_sizes().get(found.kernel)
    if sizes is None:
        return None
    return _share(Launch(found.kernel, found.dtype, arguments={**found.arguments, **sizes}))


@functools.cache
def _counted_sizes() -> dict[str, dict[str, int]]:
    """Return the sizes at which each kernel is counted: a launch of them is short, and like those that are timed."""
    return {
        kernel: dict(sweep.fixed)
        for sweep in catalog.counted()
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel]))
    }


@functools.cache
def _share(launch: Launch) -> float | None:
    try:
        totals = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments).counters.totals()
    except (GpuKernelsError, PtxError):  # no compiler here, or a kernel that someone is working on
        return None
    ideal, moved = (totals[f"load_{what}"] + totals[f"store_{what}"] for what in ("ideal_sectors", "sectors"))
    return ideal / moved if moved else None
