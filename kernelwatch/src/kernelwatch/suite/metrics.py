"""What is read off the counters of a launch: totals, which decide, and ratios, which explain them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ptxcount.counting.counters import LaunchCounters

#: The architecture whose PTX is counted. Data movement compiles to the same loads and stores for all of them.
ARCH = "sm_90"


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


#: Spaces of PTX whose sectors lie in global memory.
_GLOBAL = ("global", "texture", "surface", "bulk")
_CONSTANT = ("constant",)
_CLUSTER = ("cluster",)


def _total(count: str, *kinds: str, spaces: tuple[str, ...] = _GLOBAL) -> Callable[[LaunchCounters], float]:
    """Return a count of the accesses to some spaces, of some kinds or of all."""
    return lambda counters: float(
        sum(
            getattr(access, count)
            for access in counters.accesses
            if access.space in spaces and (not kinds or access.kind in kinds)
        )
    )


def _merged_wavefronts(counters: LaunchCounters) -> float:
    """Return the wavefronts of shared memory, those of neighbouring loads and stores as ptxas merges them."""
    merged = counters.merged
    others = (each for each in counters.accesses if each.space == "shared" and each.kind not in merged)
    return float(sum(wavefronts for _, wavefronts in merged.values()) + sum(each.wavefronts for each in others))


#: To add a metric: one row. asv finds stored numbers by its name.
RATIOS = {
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
TOTALS = {
    "sectors_loaded": Metric("sectors", "sectors loaded", _total("sectors", "load")),
    "sectors_stored": Metric("sectors", "sectors stored", _total("sectors", "store")),
    "sectors_of_atomics": Metric("sectors", "sectors of atomics", _total("sectors", "atomic")),
    "requests": Metric("requests", "requests to global memory", _total("requests")),
    "local_sectors": Metric("sectors", "sectors of local memory", _total("sectors", spaces=("local",))),
    "local_requests": Metric("requests", "requests to local memory", _total("requests", spaces=("local",))),
    "cluster_sectors": Metric(
        "sectors", "sectors of other blocks' shared memory", _total("sectors", spaces=_CLUSTER), True
    ),
    "cluster_requests": Metric(
        "requests", "requests to other blocks' shared memory", _total("requests", spaces=_CLUSTER), True
    ),
    "constant_addresses": Metric(
        "addresses", "different addresses of constant memory a request, summed", _total("addresses", spaces=_CONSTANT)
    ),
    "constant_requests": Metric("requests", "requests to constant memory", _total("requests", spaces=_CONSTANT)),
    # cp.async's stores, of the kind "copy", count as well.
    "wavefronts": Metric("wavefronts", "wavefronts of shared memory", _total("wavefronts", spaces=("shared",)), True),
    "merged_wavefronts": Metric(
        "wavefronts", "wavefronts of shared memory, as ptxas merges accesses", _merged_wavefronts, True
    ),
}
METRICS = RATIOS | TOTALS
