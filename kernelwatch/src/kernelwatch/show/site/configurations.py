"""Facts about each benchmark for the pages: its axes, and what its figures show."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwatch.errors import KernelwatchError
from kernelwatch.kernel.launch import read_parameters
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts, registry

#: Axes that benchmarks of any kernel may have. In `describe_benchmark`, they are neither in `own` nor `along`.
COMMON_AXES = ("dtype", "flags", "arch")


def describe_benchmark(history: History, benchmark: str) -> dict[str, Any]:
    """Return a benchmark's facts for the pages.

    A benchmark of times also has the work of each configuration, in the order of the axes: `useful_bytes` and `flops`,
    null if unknown. `flops` is null if no configuration has any. `computes` is true if some configuration has more
    operations than useful bytes. `shared` has the facts that the benchmarks of a class usually share:

    - `axes`, `chosen`: each axis's values, and its value in summaries.
    - `lines`: the axis that figures compare, that of kernels or else dtypes; null if there is none.
    - `own`: all other axes but COMMON_AXES.
    - `along`: the x axis of figures, the longest of `own`; null if there is none.
    - `family`: the title without the metric.
    - `kernel`: the only kernel if no axis selects kernels.
    - `plain_copy`: whether it is the suite's plain copy.
    - `kind`, `type`: the suite's word and asv's word for its numbers.
    - `note`, `in_l2`, `isolated`: attributes of `Benchmark`; `fetched` is its `l2_fetch_bytes`.
    """
    axes = history.find_axes(benchmark)
    kind, sweep = registry.current_suite().benchmarks.get(benchmark, (None, None))
    lines = next((axis for axis in axes if is_kernel_axis(axis, axes)), "dtype" if "dtype" in axes else None)
    own_axes = [axis for axis in axes if axis not in (*COMMON_AXES, lines)]
    title = history.get_title(benchmark)
    shared = {
        "axes": axes,
        "chosen": {axis: str(value) for axis, value in sweep.summary_point().items()} if sweep else {},
        "note": sweep.note if sweep else "",
        "family": re.sub(r"(, counted)?:.*$", "", title),
        "kind": kind and kind.value,
        "type": history.get_type(benchmark),
        "lines": lines,
        "own": own_axes,
        "along": max(own_axes, key=lambda axis: len(axes[axis]), default=None),
        "kernel": sweep.kernel if sweep else "",
        "plain_copy": bool(sweep and sweep is registry.current_suite().copy),
        "in_l2": bool(sweep and sweep.in_l2),
        "isolated": bool(sweep and sweep.isolated),
        "fetched": sweep.l2_fetch_bytes if sweep else 0,
    }
    fields: dict[str, Any] = {"title": title, "unit": history.get_unit(benchmark), "shared": shared}
    if shared["type"] == "time":
        all_params = list_combinations(axes)
        fields["useful_bytes"] = [launch_facts.find_useful_bytes(benchmark, params) for params in all_params]
        flops = [launch_facts.find_flops(benchmark, params) for params in all_params]
        fields["flops"] = flops if any(flops) else None
        pairs = zip(flops, fields["useful_bytes"], strict=True)
        fields["computes"] = any((flops or 0) > (moved or 0) for flops, moved in pairs)
    return fields


def is_kernel_axis(axis: str, axes: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the values of an axis name kernels."""
    try:
        return any("kernel" in read_parameters({axis: value}) for value in axes[axis])
    except (ValueError, KernelwatchError):  # results may be older or newer than the suite
        return False


def list_combinations(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return the parameters of every configuration, the last axis varying fastest, as asv stores them."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
