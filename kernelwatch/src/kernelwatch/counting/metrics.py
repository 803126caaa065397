"""What is read off the counters of a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ptxcount.counters import LaunchCounters


class Metric(NamedTuple):
    """One number that asv tracks for a launch.

    Its unit, what a person calls it, how it is taken from the counters, and whether shared memory must be used for it
    to mean anything.
    """

    unit: str
    title: str
    value: Callable[[LaunchCounters], float]
    shared: bool = False


def _ratio(count: str, of: str) -> Callable[[LaunchCounters], float]:
    """Return totals over totals, summed over loads and stores if so asked; zero where there was no request."""

    def value(counters: LaunchCounters) -> float:
        totals = counters.totals()
        kinds = ("load", "store") if "{}" in count else ("",)
        counted, requests = (sum(totals[name.format(kind)] for kind in kinds) for name in (count, of))
        return counted / max(requests, 1)

    return value


#: To add a metric: one row. Atomics are in none but the instructions: ptxcount does not count them as the chip does.
METRICS = {
    "load_sectors": Metric("sectors/request", "sectors a load request", _ratio("load_sectors", "load_requests")),
    "store_sectors": Metric("sectors/request", "sectors a store request", _ratio("store_sectors", "store_requests")),
    "load_lines": Metric("lines/request", "cache lines a load request", _ratio("load_lines", "load_requests")),
    "store_lines": Metric("lines/request", "cache lines a store request", _ratio("store_lines", "store_requests")),
    "bank_conflicts": Metric(
        "conflicts/request",
        "bank conflicts a shared memory request",
        _ratio("shared_{}_bank_conflicts", "shared_{}_requests"),
        shared=True,
    ),
    "instructions": Metric(
        "instructions/thread", "PTX instructions executed a thread", _ratio("thread_instructions", "threads")
    ),
}
