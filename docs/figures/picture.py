"""The results page's picture: useful bandwidth of the kernels that move data."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelwatch.store.models import Document
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.sweep import Sweep
from ptxcount.util import atomic_write

DTYPE = "float32"


def describe_conditions(run: dict[str, Any]) -> str:
    """Return a run's GPU, driver, nvcc version and date as one text."""
    nvcc = run["nvcc"].rpartition("V")[2]
    return f"{run['gpu']}, driver {run['before']['driver']}, nvcc {nvcc}, {run['started'][:10]}"


def collect_rates(history: History) -> dict[str, Any]:
    """Return the measuring conditions, the theoretical peak in GB/s, and each sweep's useful GB/s by its first axis.

    Raises
    ------
    LookupError
        No times of this machine are stored.
    """
    swept = dict(_iter_sweeps())
    first = next(iter(swept))
    results = history.find_newest(first)
    if results is None:
        raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
    run = history.find_last_run(results, first)
    return {
        "facts": f"{describe_conditions(run)}, commit {results.commit_hash[:8]}",
        "peak": round(run["peak_bytes_per_second"] / 1e9),
        "rates": {
            sweep.title: rates
            for name, sweep in swept.items()
            if (rates := _find_rates(history, results, name, sweep))  # empty if the commit lacks the kernels
        },
    }


def _iter_sweeps() -> Iterator[tuple[str, Sweep]]:
    """Yield the names and sweeps of the benchmarks that the picture shows.

    Kernels with floating-point operations are left out, because memory may not limit them.
    """
    for name, (kind, sweep) in registry.current_suite().benchmarks.items():
        axis, chosen = next(iter(sweep.axes)), sweep.summary_point()
        plain = kind is registry.Kind.TIMED and not (
            sweep.isolated or sweep.in_l2 or sweep.l2_fetch_bytes or axis in ("copy", "rows x columns")
        )
        if plain and chosen["dtype"] == DTYPE and launch_facts.find_flops(name, chosen) is None:
            yield name, sweep


def _find_rates(history: History, results: Document, benchmark: str, sweep: Sweep) -> dict[str, float]:
    axis, *remaining_axes = sweep.axes
    fixed = {
        other_axis: str(value) for other_axis, value in sweep.summary_point().items() if other_axis in remaining_axes
    }
    return {
        point.params[axis]: round(useful / point.value / 1e9, 2)
        for point in history.iter_points(results, benchmark)
        if point.value is not None and fixed.items() <= point.params.items()
        if (useful := launch_facts.find_useful_bytes(benchmark, point.params)) is not None
    }


def draw_picture(history: History, path: Path) -> None:
    """Draw the picture as SVG. Its metadata hold the shown data as JSON."""
    import matplotlib as mpl  # noqa: PLC0415 -- slow to import, and only this needs it

    mpl.use("svg")
    from matplotlib import pyplot  # noqa: PLC0415

    shown = collect_rates(history)
    mpl.rcParams.update({"svg.hashsalt": "coalescing-watch", "svg.fonttype": "none", "font.size": 9})
    swept = {sweep.title: sweep for _, sweep in _iter_sweeps() if sweep.title in shown["rates"]}
    figure, places = pyplot.subplots(1, len(swept), figsize=(3.7 * len(swept), 3.4), layout="constrained")
    for axes, (title, sweep) in zip(places, swept.items(), strict=True):
        rates, axis = shown["rates"][title], next(iter(sweep.axes))
        where = [str(value) for name, value in sweep.summary_point().items() if name not in (axis, "dtype", "flags")]
        axes.set_title(", ".join([title, *where]))
        if axis == "kernel":
            names = [name.removeprefix(f"{title.partition(',')[0].lower()}_") for name in rates]
            bars = axes.barh(names, list(rates.values()), color="#0072b2")
            axes.bar_label(bars, fmt="%.0f", padding=3)
            axes.invert_yaxis()
            axes.set_xlim(0, shown["peak"])
            axes.set_xlabel("useful GB/s")
        else:
            axes.plot(list(rates), list(rates.values()), marker="o", color="#0072b2")
            axes.set_ylim(0, shown["peak"])
            axes.set_xlabel(f"{axis}, elements")
            axes.set_ylabel("useful GB/s")
    figure.suptitle(
        f"{shown['facts']}; {DTYPE}, -Xptxas -O3\naxes end at the theoretical peak, {shown['peak']} GB/s", fontsize=9
    )
    path.parent.mkdir(exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Description": json.dumps(shown, sort_keys=True)})
    pyplot.close(figure)
    atomic_write.write(path, drawn.getvalue())
