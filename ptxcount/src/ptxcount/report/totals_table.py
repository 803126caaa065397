"""The totals of a launch as a table of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..counting.counters import Amounts, LaunchCounters


def format_ratio(count: int, requests: int) -> str:
    """Format a count per request with two decimals; a dash without requests."""
    return f"{count / requests:.2f}" if requests else "-"


def _format_row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>16}" for cell in cells[1:])


class _Section(NamedTuple):
    space: str
    #: Prefix of the space's keys in `LaunchCounters.totals`, such as ``shared_``.
    prefix: str
    #: Name of the total in the second column, such as ``sectors``.
    unit: str
    #: Heading and total of the last column. A total that is an ideal is shown per request.
    heading: str
    last_total: str


_SECTIONS = (
    _Section("global", "", "sectors", "ideal", "ideal_sectors"),
    _Section("global", "", "lines", "ideal", "ideal_lines"),
    _Section("shared", "shared_", "wavefronts", "bank conflicts", "bank_conflicts"),
    _Section("cluster", "cluster_", "sectors", "ideal", "ideal_sectors"),
    *(_Section(space, f"{space}_", "sectors", "useful bytes", "useful_bytes")
      for space in ("local", "texture", "surface", "bulk")),
)  # fmt: skip


def format_table(counters: LaunchCounters) -> str:
    """Format the totals of a launch: sections by memory, DRAM traffic, polling, and instructions per thread."""
    totals = counters.totals()
    copies = [access for access in counters.accesses if access.kind == "copy"]
    for name in ("requests", "wavefronts", "bank_conflicts"):
        totals[f"shared_copy_{name}"] = sum(getattr(copy, name) for copy in copies)
    rows = []
    for section in _SECTIONS:
        kinds = [kind for kind in ("load", "store", "atomic", "copy") if f"{section.prefix}{kind}_requests" in totals]
        if kinds:
            rows.append(_format_row(section.space, "requests", section.unit, "per request", section.heading))
            for kind in kinds:
                rows += _iter_kind_rows(section, kind, counters, totals)
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
        repeated = f"{counters.polls} repeated {' and '.join(polling)} requests"
        rows += [f"polling: {repeated}, not in the totals, because the number depends on scheduling", ""]
    return "\n".join([*rows, f"{counters.threads} threads, {per_thread:.1f} PTX instructions each"])


def _iter_kind_rows(section: _Section, kind: str, counters: LaunchCounters, totals: Mapping[str, int]) -> Iterator[str]:
    """Yield the row of loads, stores, or if any, atomics or copies; and a second row if merging by ptxas changes it."""
    space, prefix, unit, _, last_total = section
    requests, count, last_count = (totals[f"{prefix}{kind}_{name}"] for name in ("requests", unit, last_total))
    if requests or kind in ("load", "store"):
        last = format_ratio(last_count, requests) if last_total.startswith("ideal_") else last_count
        row = _format_row(f"  {kind}", requests, count, format_ratio(count, requests), last)
        note = "(cp.async: neither loads nor stores)" if kind == "copy" else ""
        if (space, kind, unit) == ("global", "atomic", "sectors"):
            note = _describe_aggregation(counters.atomics)
        caveat = counters.caveats().get(f"{space} {kind}", note)
        yield f"{row}  {caveat}".rstrip()
    merged = counters.merged.get(kind) if space == "shared" else None  # requests and wavefronts
    if merged not in (None, (requests, count)):
        row = _format_row(f"  {kind}", *merged, format_ratio(merged[1], merged[0]))
        yield f"{row}  as ptxas would merge"


def _describe_aggregation(atomics: Amounts) -> str:
    if atomics.together <= atomics.requests:  # each lane has an address of its own
        return ""
    if atomics.aggregated == atomics.requests:
        return "(warp-aggregated by ptxas)"
    exception = f", except in {atomics.aggregated} warp-aggregated requests" if atomics.aggregated else ""
    return f"(lanes on one address are serialized{exception})"
