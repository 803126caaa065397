"""Counters as text and as JSON: the totals, and the source with the cost of each line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..util.grammar import count_noun
from .totals_table import format_ratio, format_table

if TYPE_CHECKING:
    from ..counting.access import Access
    from ..counting.counters import LaunchCounters

#: Factor over the ideal above which an access is wasteful.
WASTEFUL = 1.5
#: Source lines shown before and after an access.
_MARGIN = 2
#: A function that returns the lines of a file that PTX names; None if the file is missing or may not be shown.
FindLines = Callable[[str], "list[str] | None"]


def format_json(counters: LaunchCounters, find_lines: FindLines = lambda name: None) -> str:
    """Format a launch as JSON: the keys of `LaunchCounters.totals`, and further keys.

    ``caveats`` is `LaunchCounters.caveats`. ``findings`` has code, source and message of each finding.
    ``lines`` has the accesses of each source line; the line's text is empty unless ``find_lines`` may show it.

    Other keys are missing if they have no value. ``merged`` has the counts of shared memory after merging by ptxas,
    ``polls`` the repeated requests of spin-waits, and ``stack_frame_bytes`` the local memory per thread.
    ``distinct_sectors`` and ``fetched_sectors`` are as in `LaunchCounters`.
    """
    findings = [
        {"code": finding.code, "where": str(finding.source), "message": finding.message}
        for finding in counters.findings
    ]
    extras: dict[str, Any] = {"caveats": counters.caveats(), "findings": findings}
    if counters.merged:
        extras["merged"] = {
            kind: {"requests": requests, "wavefronts": wavefronts}
            for kind, (requests, wavefronts) in counters.merged.items()
        }
    if counters.polls:
        extras["polls"] = counters.polls
    if counters.stack_frame is not None:
        extras["stack_frame_bytes"] = counters.stack_frame
    if counters.distinct_sectors is not None:
        extras["distinct_sectors"] = dict(zip(("read", "written"), counters.distinct_sectors, strict=True))
        extras["fetched_sectors"] = counters.fetched_sectors
    return json.dumps({**counters.totals(), **extras, "lines": list_lines(counters, find_lines)}, indent=2)


#: Counts of one access, in addition to its space, kind and width.
_ACCESS_COUNTS = ("requests", "sectors", "ideal_sectors", "lines", "ideal_lines", "wavefronts", "bank_conflicts",
         "useful_bytes", "addresses")  # fmt: skip


def list_lines(counters: LaunchCounters, find_lines: FindLines = lambda name: None) -> list[dict[str, Any]]:
    """List the source lines with their accesses as dicts that JSON can represent, in the order of files and lines."""
    rows = []
    places = counters.by_line().items()
    for (file, line), accesses in sorted(places, key=lambda place: (place[0][0] or "", place[0][1] or 0)):
        access_rows = [
            {"space": access.space, "kind": access.kind, "width": access.width, "ptx_line": access.source.ptx_line}
            | {name: getattr(access, name) for name in _ACCESS_COUNTS}
            for access in accesses
        ]
        text = find_line_text(file, line, find_lines)
        rows.append({"file": file, "line": line, "text": text, "accesses": access_rows})
    return rows


def find_line_text(file: str | None, line: int | None, find_lines: FindLines) -> str:
    """Return a source line without surrounding spaces; empty if there is no such line, or it may not be shown."""
    file_lines = find_lines(file) if file else None
    return file_lines[line - 1].strip() if file_lines and line and line <= len(file_lines) else ""


def is_wasteful(access: Access) -> bool:
    """Tell if an access has bank conflicts, or costs over 1.5 times its ideal in constant, global or cluster memory."""
    wastes_sectors = access.space in ("global", "cluster") and access.sectors > WASTEFUL * access.ideal_sectors
    return access.bank_conflicts > 0 or wastes_sectors or access.addresses > WASTEFUL * access.requests


def advise_shift(access: Access) -> str:
    """Describe the shift of a bulk copy's shared buffer that takes the fewest sectors; empty if none takes fewer.

    The GPU splits a copy at multiples of 128 bytes of the shared address. Shifts are multiples of 16 bytes.
    """
    sectors = access.shifted_sectors
    if not sectors or min(sectors) == sectors[0]:
        return ""
    # `access.sectors` also includes copies by a tensor map, so only the difference is used.
    shift, saved = 16 * sectors.index(min(sectors)), sectors[0] - min(sectors)
    shifted, actual = (format_ratio(count, access.requests) for count in (access.sectors - saved, access.sectors))
    return f"; {shifted} instead of {actual} if the shared buffer is moved by {shift} bytes"


def describe_cost(access: Access) -> str:
    """Describe the counts of an access per request, and its caveat: "shared load: 2.00 wavefronts per request, ..."."""
    text = _describe_counts(access)
    if access.kind == "atomic":
        text += f"; {format_ratio(access.together, access.requests)} lanes on one address"
        if access.aggregated and access.together > access.requests:
            text += f", warp-aggregated by ptxas: {count_noun(access.aggregated, 'request')}"
    if access.polls:
        text += f"; plus {access.polls} polling requests (not counted)"
    return f"{text}; {access.caveat}" if access.caveat else text


def _describe_counts(access: Access) -> str:
    def per_request(count: int) -> str:
        return format_ratio(count, access.requests)

    sectors, ideal = per_request(access.sectors), per_request(access.ideal_sectors)
    if access.space == "global":
        lines = f"{per_request(access.lines)} cache lines, ideal {per_request(access.ideal_lines)}"
        return f"{access.kind}: {sectors} sectors per request, ideal {ideal}; {lines}"
    if access.space == "cluster":
        return f"{access.kind}: distributed shared memory, {sectors} sectors per request, ideal {ideal}"
    if access.space in ("texture", "surface", "bulk"):
        return f"{access.space} {access.kind}: {sectors} sectors per request{advise_shift(access)}"
    if access.space == "local":
        return f"{access.kind}: local memory, {sectors} sectors per request"
    if access.space == "constant":
        return f"constant {access.kind}: {per_request(access.addresses)} addresses per request, ideal 1.00"
    wavefronts, conflict_free = per_request(access.wavefronts), per_request(access.conflict_free)
    return f"shared {access.kind}: {wavefronts} wavefronts per request, {conflict_free} without bank conflicts"


def format_listing(counters: LaunchCounters, find_lines: FindLines) -> str:
    """Format the source around memory accesses, with the cost of each, file by file. ``>>`` marks wasteful accesses.

    Accesses without a source line, uniform constants, and local memory that ptxas keeps in registers are left out.
    """
    from dataclasses import replace  # noqa: PLC0415 -- it imports inspect, which is slow and often not needed

    accesses_by_file: dict[str, dict[int, list[Access]]] = {}
    listed = [access for access in counters.machine_code_accesses() if not access.is_uniform_constant]
    for (file, line), accesses in replace(counters, accesses=listed).by_line().items():
        if file is not None and line is not None:
            accesses_by_file.setdefault(file, {})[line] = accesses
    lines: list[str] = []
    for file, accesses_by_line in sorted(accesses_by_file.items()):
        lines += _format_file(file, accesses_by_line, find_lines(file))
    return "\n".join(lines)


def _format_file(name: str, accesses: dict[int, list[Access]], lines: list[str] | None) -> Iterator[str]:
    """Yield the listing of a file, from its accesses by line; without ``lines``, only the lines with accesses."""
    yield f"{Path(name).name}:"
    shown = set(accesses)
    if lines is not None:
        for line in accesses:
            shown.update(range(max(line - _MARGIN, 1), min(line + _MARGIN, len(lines)) + 1))
    last = 0
    for line in sorted(shown):
        if last and line > last + 1:
            yield "        ..."
        last = line
        line_accesses = accesses.get(line, [])
        mark = ">>" if any(map(is_wasteful, line_accesses)) else "  "
        text = lines[line - 1] if lines is not None and 1 <= line <= len(lines) else ""
        yield f"{mark}{line:>5}  {text}".rstrip()
        yield from _format_accesses(line_accesses)


def _format_accesses(accesses: list[Access]) -> Iterator[str]:
    """Yield a row for each kind of access at a line. Compilers unroll loops: instructions of one kind share a row."""
    from ..counting.access import sum_accesses  # noqa: PLC0415 -- with all of NumPy, as above

    accesses_by_kind: dict[tuple[object, ...], list[Access]] = {}
    for access in accesses:
        key = (is_wasteful(access), access.space, access.kind, access.caveat)
        accesses_by_kind.setdefault(key, []).append(access)
    for (wasteful, *_), similar in accesses_by_kind.items():
        instructions = f" ({len(similar)} instructions)" if len(similar) > 1 else ""
        yield f"{'>>' if wasteful else '  '}       ^ {describe_cost(sum_accesses(similar))}{instructions}"


def format_page(text: str) -> str:
    """Format a listing as a self-contained HTML page. The first line is the title; ``>>`` lines are highlighted."""
    from html import escape  # noqa: PLC0415 - with all entities of HTML

    title = escape(text.partition("\n")[0])
    body = re.sub(r"(?m)^&gt;&gt;.*", r"<mark>\g<0></mark>", escape(text))
    style = ":root { color-scheme: light dark } pre { font: 13px/1.35 monospace } mark { background: #f977 }"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><pre>{body}</pre></body></html>\n'


#: Suffixes of files in a folder whose lines may be shown.
_SOURCES = (".py", ".mojo", ".slang", ".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".hpp")


def read_source_lines(sources: Iterable[Path]) -> FindLines:
    """Return a `FindLines` that shows only the files among ``sources``, and source files in folders among them.

    PTX may name any file of this machine, as by ``#line`` in its source.
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
    """Format the result of `count`: totals, source lines with costs, findings.

    The command line also writes a title and a summary of costs.

    Parameters
    ----------
    counters : LaunchCounters
        Result of `count`.
    sources : iterable of Path or str
        Files, and folders of sources, whose lines may be shown.
    """
    return format_report(counters, read_source_lines(map(Path, sources)))


def format_report(counters: LaunchCounters, find_lines: FindLines, *heads: str) -> str:
    """Format the texts ``heads``, then totals, source lines and findings; leave empty parts out."""
    findings = "\n".join(map(str, counters.findings))
    parts = [*heads, format_table(counters), format_listing(counters, find_lines), findings]
    return "\n\n".join(filter(None, parts))
