"""Counters as text: a table of totals, and the source with what each line costs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .counters import Access, LaunchCounters

#: A line is marked if it moves at least this many times the sectors that its bytes need.
WASTEFUL = 1.5
_MARGIN = 2
Lines = Callable[[str], "list[str] | None"]


def _ratio(count: int, requests: int) -> str:
    return f"{count / requests:.2f}" if requests else "-"


def _row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>16}" for cell in cells[1:])


#: The parts of the table: the space, the prefix of its totals, the unit that is counted; and of the last column the
#: heading, the total, and how that is shown of so many requests.
_PARTS: tuple[tuple[str, str, str, str, str, Callable[[int, int], object]], ...] = (
    ("global", "", "sectors", "ideal", "ideal_sectors", _ratio),
    ("global", "", "lines", "ideal", "ideal_lines", _ratio),
    ("shared", "shared_", "wavefronts", "bank conflicts", "bank_conflicts", lambda count, requests: count),
)


def table(counters: LaunchCounters) -> str:
    """The totals of a launch: global memory by sectors and by lines, shared memory, the instructions of a thread."""
    totals = counters.totals()
    rows = []
    for space, prefix, unit, heading, beside, shown in _PARTS:
        rows.append(_row(space, "requests", unit, "per request", heading))
        for kind in ("load", "store", "atomic"):
            requests, count, other = (totals[f"{prefix}{kind}_{name}"] for name in ("requests", unit, beside))
            if requests or kind != "atomic":
                row = _row(f"  {kind}", requests, count, _ratio(count, requests), shown(other, requests))
                caveat = counters.caveats().get(f"{space} {kind}", "")
                rows.append(f"{row}  {caveat}".rstrip())
        rows.append("")
    each = counters.thread_instructions / max(counters.threads, 1)
    return "\n".join([*rows, f"{counters.threads} threads, {each:.1f} PTX instructions each"])


def as_json(counters: LaunchCounters) -> str:
    """`LaunchCounters.totals` as JSON, and more.

    ``caveats`` says what numbers leave out, ``findings`` has code, place and message of each finding, ``printed`` what
    the kernel printed.
    """
    found = [{"code": each.code, "where": str(each.source), "message": each.message} for each in counters.findings]
    said = {"caveats": counters.caveats(), "findings": found, "printed": counters.printed}
    return json.dumps({**counters.totals(), **said}, indent=2)


def is_wasteful(access: Access) -> bool:
    """Whether an instruction has bank conflicts, or moves far more sectors than its bytes fill."""
    return access.bank_conflicts > 0 or access.sectors > WASTEFUL * access.ideal_sectors


def _cost(access: Access) -> str:
    cost = _counted(access)
    if access.kind == "atomic":
        cost += f"; {_ratio(access.together, access.requests)} lanes on one address"
    return f"{cost}; {access.caveat}" if access.caveat else cost


def _counted(access: Access) -> str:
    if access.space == "global":
        counts = (access.sectors, access.ideal_sectors, access.lines, access.ideal_lines)
        sectors, fewest, lines, least = (_ratio(count, access.requests) for count in counts)
        return f"{access.kind}: {sectors} sectors a request, ideal {fewest}; {lines} cache lines, ideal {least}"
    if access.space != "shared":
        return f"{access.kind}: {access.space} memory"
    each = _ratio(access.wavefronts, access.requests)
    ideal = _ratio(access.conflict_free, access.requests)
    return f"shared {access.kind}: {each} wavefronts a request, {ideal} without bank conflicts"


def listing(counters: LaunchCounters, lines_of: Lines) -> str:
    """The source around the memory accesses, with the cost of each, file by file. ``>>`` marks wasteful ones.

    ``lines_of`` gives the lines of a file by its name in the PTX; None where they are not to be shown.
    """
    found: dict[str, dict[int, list[Access]]] = {}
    for (file, line), accesses in counters.by_line().items():
        if file is not None and line is not None:
            found.setdefault(file, {})[line] = accesses
    return "\n".join(text for file in sorted(found) for text in _file(file, found[file], lines_of(file)))


def _file(name: str, accesses: dict[int, list[Access]], lines: list[str] | None) -> Iterator[str]:
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
        here = accesses.get(line, [])
        mark = ">>" if any(map(is_wasteful, here)) else "  "
        text = lines[line - 1] if lines is not None and 1 <= line <= len(lines) else ""
        yield f"{mark}{line:>5}  {text}".rstrip()
        costs = Counter((is_wasteful(access), _cost(access)) for access in here)
        for (wasteful, cost), count in costs.items():
            yield f"{'>>' if wasteful else '  '}       ^ {cost}" + f" ({count} instructions)" * (count > 1)


def source_lines(sources: Iterable[Path]) -> Lines:
    """Read the lines of these sources, but of no other files: a ``#line`` in a source may name any of this machine.

    The result is a function from a file's name to its lines; None if it is not there or not to be shown.
    """
    shown = {source.resolve() for source in sources}

    def lines_of(name: str) -> list[str] | None:
        try:
            path = Path(name).resolve()
            if path in shown:
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError, RuntimeError):  # the last two: no name of a file, links in a circle
            pass
        return None

    return lines_of
