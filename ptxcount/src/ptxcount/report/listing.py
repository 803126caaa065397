"""Counters as text: a table of totals, and the source with the cost of each line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..counting.counters import Access, Amounts, LaunchCounters

#: A line is marked if its sectors exceed this multiple of its ideal sectors.
WASTEFUL = 1.5
_MARGIN = 2
FindLines = Callable[[str], "list[str] | None"]


def _format_ratio(count: int, requests: int) -> str:
    return f"{count / requests:.2f}" if requests else "-"


def _format_row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>16}" for cell in cells[1:])


#: The parts of the table: space, prefix of its totals, unit; and for the last column the heading, the total, and its
#: format as a function of the total and the requests.
_PARTS: tuple[tuple[str, str, str, str, str, Callable[[int, int], object]], ...] = (
    ("global", "", "sectors", "ideal", "ideal_sectors", _format_ratio),
    ("global", "", "lines", "ideal", "ideal_lines", _format_ratio),
    ("shared", "shared_", "wavefronts", "bank conflicts", "bank_conflicts", lambda count, requests: count),
    ("cluster", "cluster_", "sectors", "ideal", "ideal_sectors", _format_ratio),
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
                row = _format_row(f"  {kind}", requests, count, _format_ratio(count, requests), last)
                note = "(cp.async: neither loads nor stores)" if kind == "copy" else ""
                if (space, kind, unit) == ("global", "atomic", "sectors"):
                    note = f"({_describe_sums(counters.atomics)})"
                caveat = counters.caveats().get(f"{space} {kind}", note)
                rows.append(f"{row}  {caveat}".rstrip())
            merged = counters.merged.get(kind) if space == "shared" else None
            if merged not in (None, (requests, count)):
                row = _format_row(f"  {kind}", *merged, _format_ratio(merged[1], merged[0]))
                rows.append(f"{row}  as ptxas would merge")
        rows.append("")
    addresses, requests = (totals.get(f"constant_{name}", 0) for name in ("addresses", "requests"))
    if addresses > requests:
        rows.append(_format_row("constant", "requests", "addresses", "per request", "ideal"))
        rows += [_format_row("  load", requests, addresses, _format_ratio(addresses, requests), "1.00"), ""]
    if not any(access.requests for access in counters.accesses):
        rows += ["0 requests: no thread reached a load or a store. Is a size among the arguments 0?", ""]
    per_thread = counters.thread_instructions / max(counters.threads, 1)
    if counters.distinct_sectors is not None:
        read, written = counters.distinct_sectors
        rows += [
            f"distinct sectors: {read} read, {written} written (minimum DRAM traffic with cold caches)",
            *_describe_fetches(counters),
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


def _describe_sums(atomics: Amounts) -> str:
    """Describe the sectors of atomics: they count lanes on one address, unless ptxas aggregates them."""
    summed = atomics.summed * (atomics.together > atomics.requests)  # a lane alone is no sum
    if summed == atomics.requests:
        return "warp-aggregated by ptxas"
    return "lanes on one address are serialized" + f"; {summed} requests warp-aggregated by ptxas" * bool(summed)


def _describe_fetches(counters: LaunchCounters) -> list[str]:
    """Describe the minimum DRAM reads, if they exceed the sectors read."""
    read, fetched = (counters.distinct_sectors or (0,))[0], counters.fetched_sectors or 0
    text = f"minimum DRAM reads: {fetched} sectors, because an L2 miss fetches 64 bytes or more"
    return [text] if fetched > read else []


def format_json(counters: LaunchCounters, find_lines: FindLines = lambda name: None) -> str:
    """Format `LaunchCounters.totals` and more as JSON.

    ``caveats`` has costs that numbers leave out. ``findings`` has code, source and message of each finding. ``lines``
    has the accesses of each source line, with its text if that may be shown. If present: ``merged`` has the counts of
    shared memory after merging by ptxas, ``polls`` the repeated requests of spin-waits.
    """
    findings = [
        {"code": finding.code, "where": str(finding.source), "message": finding.message}
        for finding in counters.findings
    ]
    merged = {
        kind: dict(zip(("requests", "wavefronts"), counts, strict=True)) for kind, counts in counters.merged.items()
    }
    extras: dict[str, Any] = {"caveats": counters.caveats(), "findings": findings}
    extras |= {"merged": merged} if merged else {}
    extras |= {"polls": counters.polls} if counters.polls else {}
    extras |= {} if counters.stack_frame is None else {"stack_frame_bytes": counters.stack_frame}
    if counters.distinct_sectors is not None:
        extras["distinct_sectors"] = dict(zip(("read", "written"), counters.distinct_sectors, strict=True))
        extras["fetched_sectors"] = counters.fetched_sectors
    return json.dumps({**counters.totals(), **extras, "lines": list_lines(counters, find_lines)}, indent=2)


#: Counts of one access, in addition to its space, kind and width.
_ACCESS_COUNTS = ("requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "wavefronts", "bank_conflicts",
         "useful_bytes", "addresses")  # fmt: skip


def list_lines(counters: LaunchCounters, find_lines: FindLines = lambda name: None) -> list[dict[str, Any]]:
    """List the accesses of each source line as plain numbers, in the order of files and lines."""
    rows = []
    places = counters.by_line().items()
    for (file, line), accesses in sorted(places, key=lambda place: (place[0][0] or "", place[0][1] or 0)):
        access_rows = [
            {"space": access.space, "kind": access.kind, "width": access.width, "ptx_line": access.source.ptx_line}
            | {name: getattr(access, name) for name in _ACCESS_COUNTS}
            for access in accesses
        ]
        rows.append(
            {"file": file, "line": line, "text": find_line_text(file, line, find_lines), "accesses": access_rows}
        )
    return rows


def find_line_text(file: str | None, line: int | None, find_lines: FindLines) -> str:
    """Return a source line without surrounding spaces; empty if it may not be shown."""
    file_lines = find_lines(file) if file else None
    return file_lines[line - 1].strip() if file_lines and line and line <= len(file_lines) else ""


def is_wasteful(access: Access) -> bool:
    """Tell if an access has bank conflicts, far more than its ideal sectors, or many constant addresses."""
    far_more = access.space in ("global", "cluster") and access.sectors > WASTEFUL * access.ideal_sectors
    return access.bank_conflicts > 0 or far_more or access.addresses > WASTEFUL * access.requests


def advise_shift(access: Access) -> str:
    """Advise a shift of the shared buffer of a bulk copy that moves fewer sectors; empty if there is none.

    The GPU splits a copy at multiples of 128 bytes of its shared address.
    """
    fewest = min(access.shifted_sectors, default=access.sectors)
    if fewest >= access.sectors:
        return ""
    place = access.shifted_sectors.index(fewest)
    fewer, now = (_format_ratio(count, access.requests) for count in (fewest, access.sectors))
    return f"; {fewer} instead of {now} if the shared buffer is moved by {16 * place} bytes"


def describe_cost(access: Access) -> str:
    """Describe the cost of an instruction."""
    text = _describe_counts(access)
    if access.kind == "atomic":
        text += f"; {_format_ratio(access.together, access.requests)} lanes on one address"
        text += f", summed by ptxas in {access.summed} requests" * bool(
            access.summed and access.together > access.requests
        )
    if access.polls:
        text += f"; plus {access.polls} polling requests (not counted)"
    return f"{text}; {access.caveat}" if access.caveat else text


def _describe_counts(access: Access) -> str:
    if access.space == "global":
        counts = (access.sectors, access.ideal_sectors, access.lines, access.ideal_lines)
        sectors, fewest, lines, least = (_format_ratio(count, access.requests) for count in counts)
        return f"{access.kind}: {sectors} sectors per request, ideal {fewest}; {lines} cache lines, ideal {least}"
    if access.space == "cluster":
        sectors, fewest = (_format_ratio(count, access.requests) for count in (access.sectors, access.ideal_sectors))
        return f"{access.kind}: distributed shared memory, {sectors} sectors per request, ideal {fewest}"
    if access.space in ("texture", "surface", "bulk"):
        text = f"{access.space} {access.kind}: {_format_ratio(access.sectors, access.requests)} sectors per request"
        return f"{text}{advise_shift(access)}"
    if access.space == "local":
        return f"{access.kind}: local memory, {_format_ratio(access.sectors, access.requests)} sectors per request"
    if access.space == "constant":
        addresses = _format_ratio(access.addresses, access.requests)
        return f"constant {access.kind}: {addresses} addresses per request, ideal 1.00"
    per_request = _format_ratio(access.wavefronts, access.requests)
    ideal = _format_ratio(access.conflict_free, access.requests)
    return f"shared {access.kind}: {per_request} wavefronts per request, {ideal} without bank conflicts"


def format_listing(counters: LaunchCounters, find_lines: FindLines) -> str:
    """Format the source around the memory accesses, with the cost of each, file by file. ``>>`` marks wasteful ones.

    Constant memory is shown if lanes read different addresses, local memory unless ptxas keeps it in registers.

    ``find_lines`` returns the lines of a file by its name in the PTX, or None if they may not be shown.
    """
    from dataclasses import replace  # noqa: PLC0415 -- with all of inspect, which an unchanged check does without

    accesses_by_file: dict[str, dict[int, list[Access]]] = {}
    shown = replace(
        counters, accesses=[access for access in counters.machine_code_accesses() if not access.is_uniform_constant]
    )
    for (file, line), accesses in shown.by_line().items():
        if file is not None and line is not None:
            accesses_by_file.setdefault(file, {})[line] = accesses
    return "\n".join(
        text
        for file in sorted(accesses_by_file)
        for text in _format_file(file, accesses_by_file[file], find_lines(file))
    )


def _format_file(name: str, accesses: dict[int, list[Access]], lines: list[str] | None) -> Iterator[str]:
    yield f"{Path(name).name}:"
    shown = set(accesses)
    if lines is not None:
        around = (range(line - _MARGIN, line + _MARGIN + 1) for line in accesses)
        shown |= {line for lines_near in around for line in lines_near if 1 <= line <= len(lines)}
    last = 0
    for line in sorted(shown):
        if last and line > last + 1:
            yield "        ..."
        last = line
        line_accesses = accesses.get(line, [])
        mark = ">>" if any(map(is_wasteful, line_accesses)) else "  "
        text = lines[line - 1] if lines is not None and 1 <= line <= len(lines) else ""
        yield f"{mark}{line:>5}  {text}".rstrip()
        costs = Counter((is_wasteful(access), describe_cost(access)) for access in line_accesses)
        for (wasteful, description), count in costs.items():
            yield f"{'>>' if wasteful else '  '}       ^ {description}" + f" ({count} instructions)" * (count > 1)


def format_page(text: str) -> str:
    """Format a listing, with its title in the first line, as a self-contained HTML page; ``>>`` lines are red."""
    from html import escape  # noqa: PLC0415 - with all entities of HTML

    title = escape(text.partition("\n")[0])
    body = re.sub(r"(?m)^&gt;&gt;.*", r"<mark>\g<0></mark>", escape(text))
    style = ":root { color-scheme: light dark } pre { font: 13px/1.35 monospace } mark { background: #f977 }"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><pre>{body}</pre></body></html>\n'


#: Suffixes of files in a folder whose lines may be shown: PTX may name any file of this machine.
_SOURCES = (".py", ".mojo", ".slang", ".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".hpp")


def read_source_lines(sources: Iterable[Path]) -> FindLines:
    """Read the lines of these files, and of sources in these folders, but of no others: a ``#line`` may name any.

    The result is a function from a file's name to its lines, or None if it is missing or may not be shown.
    """
    allowed = {source.resolve() for source in sources}

    def find_lines(name: str) -> list[str] | None:
        try:
            path = Path(name).resolve()
            if path in allowed or (path.suffix in _SOURCES and not allowed.isdisjoint(path.parents)):
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError, RuntimeError):  # the last two: invalid file name, circular links
            pass
        return None

    return find_lines


def format_counters(counters: LaunchCounters, sources: Iterable[Path | str] = (".",)) -> str:
    """Format the result of `count` as the command line does: totals, source lines with their costs, findings.

    Parameters
    ----------
    counters : LaunchCounters
        Result of `count`.
    sources : iterable of Path or str
        Files, and folders of sources, whose lines may be shown.
    """
    return format_report(counters, read_source_lines(map(Path, sources)))


def format_report(counters: LaunchCounters, find_lines: FindLines, *heads: str) -> str:
    """Format totals, source lines and findings after ``heads``; empty parts are left out."""
    findings = "\n".join(map(str, counters.findings))
    parts = [*heads, format_table(counters), format_listing(counters, find_lines), findings]
    return "\n\n".join(filter(None, parts))
