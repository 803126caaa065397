"""How fast each kernel is on each machine, at one size, and how that went over the commits: Overview's tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwatch import suite
from kernelwatch.store.results import History
from kernelwatch.suite import Kind


def tiles(history: History) -> list[dict[str, Any]]:
    """Return a tile for each kernel that was timed, at the size, dtype and flags that tell most of its benchmark.

    `rates` are useful GB/s by commit, GFLOP/s where the kernel computes more than it moves. `peak` and `copy` are per
    cent of the theoretical bandwidth and of the speed of a plain copy of the same bytes, of the newest commit that has
    a time.
    """
    found: dict[str, dict[str, Any]] = {}
    for benchmark, (kind, sweep) in suite.BENCHMARKS.items():
        if kind is not Kind.TIMED or sweep.isolated or sweep is suite.DEVICE_COPY:
            continue
        for kernel in map(str, sweep.axes.get("kernel", [""])):
            params = {axis: str(value) for axis, value in sweep.chosen().items()} | (
                {"kernel": kernel} if kernel else {}
            )
            launch = suite.launch(benchmark, params)
            if launch is not None and launch.kernel not in found and (tile := _tile(history, benchmark, params)):
                found[launch.kernel] = {"kernel": launch.kernel, **tile}
    return list(found.values())


def sparkline(rates: Sequence[tuple[str, float]]) -> list[tuple[float, float]]:
    """Return where the points of a tile's line lie in a picture of 200 by 44: rates by commit, oldest first, from 0."""
    most, last, edge = max(rate for _, rate in rates), len(rates) - 1, 5
    across = [edge + place * (200 - 2 * edge) / last if last else 100 for place in range(len(rates))]
    return [
        (round(x, 2), round(44 - edge - rate / most * (44 - 2 * edge), 2))
        for x, (_, rate) in zip(across, rates, strict=True)
    ]


def _tile(history: History, benchmark: str, params: dict[str, str]) -> dict[str, Any] | None:
    commits = history.graph.line
    times = {commit: _value(history, commit, benchmark, params) for commit in commits}
    measured = [commit for commit in commits if times[commit]]
    useful, flops = suite.useful_bytes(benchmark, params), suite.flops(benchmark, params)
    # A sum of vectors computes too, but less than an operation a byte: memory limits it, as it does a copy.
    flops = flops if flops and useful and flops > useful else None
    work = flops or useful
    if not measured or not work:
        return None
    newest = measured[-1]
    seconds = times[newest]
    assert seconds, "it was measured"
    copies = None if flops else _value(history, newest, suite.control(benchmark), params)
    runs = (history.timed_run_of(results) for commit in reversed(measured) if (results := history.commit(commit)))
    # Not every run recorded it.
    peak = (
        None
        if flops
        else next((run["peak_bytes_per_second"] for run in runs if run.get("peak_bytes_per_second")), None)
    )
    return {
        "benchmark": benchmark,
        "title": history.title(benchmark),
        "params": params,
        "verified": suite.verified(benchmark, params),
        "unit": "GFLOP/s" if flops else "GB/s",
        "newest": newest,
        "rates": [[commit, work / time / 1e9] for commit in measured if (time := times[commit])],
        "copy": 100 / copies if copies else None,
        "peak": 100 * work / seconds / peak if peak else None,
    }


def _value(history: History, commit: str, benchmark: str, params: dict[str, str]) -> float | None:
    """Of several Pythons that measured it, the last by name counts."""
    if benchmark not in history.benchmarks("time") + history.benchmarks("track"):
        return None
    results = history.commit(commit)
    return None if results is None else history.value(results, benchmark, params)
