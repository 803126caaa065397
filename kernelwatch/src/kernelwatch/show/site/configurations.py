"""Facts about each benchmark for the pages: its axes, and what its figures show."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwatch.errors import KernelwatchError
from kernelwatch.kernel.launch import read_parameters
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.sweep import Sweep

#: Axes that benchmarks of any kernel may have. In `describe_benchmark`, they are neither in `own` nor `along`.
COMMON_AXES = ("dtype", "flags", "arch")

#: Sweep of benchmarks that the suite does not have.
_NO_SWEEP = Sweep("", "", {})


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
    kind, sweep = registry.current_suite().benchmarks.get(benchmark, (None, _NO_SWEEP))
    lines = next((axis for axis in axes if is_kernel_axis(axis, axes)), "dtype" if "dtype" in axes else None)
    own_axes = [axis for axis in axes if axis not in (*COMMON_AXES, lines)]
    title = history.get_title(benchmark)
    shared = {
        "axes": axes,
        "chosen": {axis: str(value) for axis, value in sweep.summary_point().items()},
        "note": sweep.note,
        "family": re.sub(r"(, counted)?:.*$", "", title),
        "kind": kind and kind.value,
        "type": history.get_type(benchmark),
        "lines": lines,
        "own": own_axes,
        "along": max(own_axes, key=lambda axis: len(axes[axis]), default=None),
        "kernel": sweep.kernel,
        "plain_copy": sweep is registry.current_suite().copy,
        "in_l2": sweep.in_l2,
        "isolated": sweep.isolated,
        "fetched": sweep.l2_fetch_bytes,
    }
    work = _describe_work(benchmark, axes) if shared["type"] == "time" else {}
    return {"title": title, "unit": history.get_unit(benchmark), "shared": shared, **work}


def _describe_work(benchmark: str, axes: dict[str, list[str]]) -> dict[str, Any]:
    all_params = list_combinations(axes)
    useful_bytes = [launch_facts.find_useful_bytes(benchmark, params) for params in all_params]
    all_flops = [launch_facts.find_flops(benchmark, params) for params in all_params]
    return {
        "useful_bytes": useful_bytes,
        "flops": all_flops if any(all_flops) else None,
        "computes": any((flops or 0) > (moved or 0) for flops, moved in zip(all_flops, useful_bytes, strict=True)),
    }


def is_kernel_axis(axis: str, axes: Mapping[str, Sequence[str]]) -> bool:
    """Return whether the values of an axis name kernels."""
    try:
        return any("kernel" in read_parameters({axis: value}) for value in axes[axis])
    except (ValueError, KernelwatchError):  # results may be older or newer than the suite
        return False


def list_combinations(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return the parameters of every configuration, the last axis varying fastest, as asv stores them."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
