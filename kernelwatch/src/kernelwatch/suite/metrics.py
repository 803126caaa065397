"""Metrics of the counters of a launch: totals, which decide, and ratios, which explain them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ptxcount.counting.counters import LaunchCounters

#: Architecture for which kernels are compiled to count. Others have the same loads and stores, except of some structs
#: (docs/limits.md), and unless the source depends on the architecture.
ARCH = "sm_90"


class Metric(NamedTuple):
    """A number that asv tracks for a launch. Metrics with `shared` apply only to kernels that use shared memory."""

    unit: str
    title: str
    value: Callable[[LaunchCounters], float]
    shared: bool = False


def _make_ratio(numerator: str, denominator: str) -> Callable[[LaunchCounters], float]:
    """Return a function that computes the ratio of two totals of a launch, or the numerator if the denominator is 0.

    {} in both names stands for "load" and "store", whose totals are added.
    """

    def compute(counters: LaunchCounters) -> float:
        totals = counters.totals()
        kinds = ("load", "store") if "{}" in numerator else ("",)
        total, divisor = (sum(totals[name.format(kind)] for kind in kinds) for name in (numerator, denominator))
        return total / max(divisor, 1)

    return compute


#: Spaces of accesses, as ptxcount names them, whose sectors are in global memory.
_GLOBAL = ("global", "texture", "surface", "bulk")
_CONSTANT = ("constant",)
_CLUSTER = ("cluster",)


def _make_sum(attribute: str, *kinds: str, spaces: tuple[str, ...] = _GLOBAL) -> Callable[[LaunchCounters], float]:
    """Return a function that sums an attribute over a launch's accesses to some spaces, only of `kinds` if given."""
    return lambda counters: float(
        sum(
            getattr(access, attribute)
            for access in counters.accesses
            if access.space in spaces and (not kinds or access.kind in kinds)
        )
    )


def _count_merged_wavefronts(counters: LaunchCounters) -> float:
    merged = counters.merged
    unmerged = (access for access in counters.accesses if access.space == "shared" and access.kind not in merged)
    return float(sum(wavefronts for _, wavefronts in merged.values()) + sum(access.wavefronts for access in unmerged))


#: Name of a ratio -> its metric. The name identifies stored numbers.
RATIOS = {
    "load_sectors": Metric("sectors/request", "sectors per load request", _make_ratio("load_sectors", "load_requests")),
    "store_sectors": Metric(
        "sectors/request", "sectors per store request", _make_ratio("store_sectors", "store_requests")
    ),
    "load_lines": Metric("lines/request", "cache lines per load request", _make_ratio("load_lines", "load_requests")),
    "store_lines": Metric(
        "lines/request", "cache lines per store request", _make_ratio("store_lines", "store_requests")
    ),
    "bank_conflicts": Metric(
        "conflicts/request",
        "bank conflicts per shared memory request",
        _make_ratio("shared_{}_bank_conflicts", "shared_{}_requests"),
        shared=True,
    ),
    "instructions": Metric(
        "instructions/thread", "PTX instructions executed per thread", _make_ratio("thread_instructions", "threads")
    ),
}
TOTALS = {
    "sectors_loaded": Metric("sectors", "sectors loaded", _make_sum("sectors", "load")),
    "sectors_stored": Metric("sectors", "sectors stored", _make_sum("sectors", "store")),
    "sectors_of_atomics": Metric("sectors", "sectors of atomics", _make_sum("sectors", "atomic")),
    "requests": Metric("requests", "requests to global memory", _make_sum("requests")),
    "local_sectors": Metric("sectors", "sectors of local memory", _make_sum("sectors", spaces=("local",))),
    "local_requests": Metric("requests", "requests to local memory", _make_sum("requests", spaces=("local",))),
    "cluster_sectors": Metric(
        "sectors", "sectors of other blocks' shared memory", _make_sum("sectors", spaces=_CLUSTER), True
    ),
    "cluster_requests": Metric(
        "requests", "requests to other blocks' shared memory", _make_sum("requests", spaces=_CLUSTER), True
    ),
    "constant_addresses": Metric(
        "addresses",
        "different addresses per request to constant memory, summed",
        _make_sum("addresses", spaces=_CONSTANT),
    ),
    "constant_requests": Metric("requests", "requests to constant memory", _make_sum("requests", spaces=_CONSTANT)),
    # Stores by cp.async, of the kind "copy", are included.
    "wavefronts": Metric(
        "wavefronts", "wavefronts of shared memory", _make_sum("wavefronts", spaces=("shared",)), True
    ),
    "merged_wavefronts": Metric(
        "wavefronts", "wavefronts of shared memory, with accesses merged by ptxas", _count_merged_wavefronts, True
    ),
}
METRICS = RATIOS | TOTALS

#: Totals that add up to the sectors of global memory.
GLOBAL_SECTORS = ("sectors_loaded", "sectors_stored", "sectors_of_atomics")
