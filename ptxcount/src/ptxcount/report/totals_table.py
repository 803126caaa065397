"""The totals of a launch as a table of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..counting.counters import Amounts, LaunchCounters


def format_ratio(count: int, requests: int) -> str:
    """Format a count per request with two decimals; a dash without requests."""
    return f"{count / requests:.2f}" if requests else "-"


def _format_row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>16}" for cell in cells[1:])


#: Sections of the table: space, prefix of its totals, unit; then the heading of the last column, its total, and a
#: function that formats it from the total and the requests.
_PARTS: tuple[tuple[str, str, str, str, str, Callable[[int, int], object]], ...] = (
    ("global", "", "sectors", "ideal", "ideal_sectors", format_ratio),
    ("global", "", "lines", "ideal", "ideal_lines", format_ratio),
    ("shared", "shared_", "wavefronts", "bank conflicts", "bank_conflicts", lambda count, requests: count),
    ("cluster", "cluster_", "sectors", "ideal", "ideal_sectors", format_ratio),
    *((space, f"{space}_", "sectors", "useful bytes", "useful_bytes", lambda count, requests: count)
      for space in ("local", "texture", "surface", "bulk")),
)  # fmt: skip


def format_table(counters: LaunchCounters) -> str:
    """Format the totals of a launch: sectors and lines of global memory, other memories, instructions per thread."""
    totals = counters.totals()
    copies = [access for access in counters.accesses if access.kind == "copy"]
    totals |= {f"shared_copy_{name}": sum(getattr(copy, name) for copy in copies)
               for name in ("requests", "wavefronts", "bank_conflicts")}  # fmt: skip
    rows = []
    for space, prefix, unit, heading, last_total, format_last in _PARTS:
        kinds = [kind for kind in ("load", "store", "atomic", "copy") if f"{prefix}{kind}_requests" in totals]
        if not kinds:
            continue
        rows.append(_format_row(space, "requests", unit, "per request", heading))
        for kind in kinds:
            requests, count, last_count = (totals[f"{prefix}{kind}_{name}"] for name in ("requests", unit, last_total))
            if requests or kind in ("load", "store"):
                last = format_last(last_count, requests)
                row = _format_row(f"  {kind}", requests, count, format_ratio(count, requests), last)
                note = "(cp.async: neither loads nor stores)" if kind == "copy" else ""
                if (space, kind, unit) == ("global", "atomic", "sectors"):
                    note = f"({_describe_aggregation(counters.atomics)})"
                caveat = counters.caveats().get(f"{space} {kind}", note)
                rows.append(f"{row}  {caveat}".rstrip())
            merged = counters.merged.get(kind) if space == "shared" else None
            if merged not in (None, (requests, count)):
                row = _format_row(f"  {kind}", *merged, format_ratio(merged[1], merged[0]))
                rows.append(f"{row}  as ptxas would merge")
        rows.append("")
    addresses, requests = (totals.get(f"constant_{name}", 0) for name in ("addresses", "requests"))
    if requests:
        rows.append(_format_row("constant", "requests", "addresses", "per request", "ideal"))
        rows += [_format_row("  load", requests, addresses, format_ratio(addresses, requests), "1.00"), ""]
    if not any(access.requests for access in counters.accesses):
        rows += ["0 requests: no thread reached a load or a store. Is a size among the arguments 0?", ""]
    per_thread = counters.thread_instructions / max(counters.threads, 1)
    if counters.distinct_sectors is not None:
        read, written = counters.distinct_sectors
        fetched = max(read, counters.fetched_sectors or 0)
        rows += [
            f"distinct sectors: {read} read, {written} written",
            f"minimum DRAM traffic with cold caches: {fetched} sectors read, {written} written (an L2 miss fetches 64 "
            "bytes or more)",
            "",
        ]
    if counters.polls:
        polling = sorted({access.kind for access in counters.accesses if access.polls}, reverse=True)
        rows += [
            f"polling: {counters.polls} repeated {' and '.join(polling)} requests, in no total (the number depends on "
            "scheduling)",
            "",
        ]
    return "\n".join([*rows, f"{counters.threads} threads, {per_thread:.1f} PTX instructions each"])


def _describe_aggregation(atomics: Amounts) -> str:
    """Describe the sectors of atomics: they count lanes on one address, unless ptxas aggregates them."""
    aggregated = atomics.aggregated if atomics.together > atomics.requests else 0  # a lane alone is not aggregated
    if aggregated == atomics.requests:
        return "warp-aggregated by ptxas"
    text = "lanes on one address are serialized"
    return f"{text}; {aggregated} requests warp-aggregated by ptxas" if aggregated else text
