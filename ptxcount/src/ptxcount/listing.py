"""Counters as text: a table of totals, and the source with what each line costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .counters import Access, LaunchCounters

#: A line is marked where it moves this many times the sectors that its bytes fill.
WASTEFUL = 1.5
_MARGIN = 2
Lines = Callable[[str], "list[str] | None"]


def _ratio(count: int, requests: int) -> str:
    return f"{count / requests:.2f}" if requests else "-"


def _row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>16}" for cell in cells[1:])


def table(counters: LaunchCounters) -> str:
    """The totals of a launch.

    Parameters
    ----------
    counters : LaunchCounters
        The launch.

    Returns
    -------
    str
        Global memory, shared memory, and the instructions of a thread.
    """
    totals = counters.totals()
    rows = [_row("global", "requests", "sectors", "per request", "ideal")]
    for kind in ("load", "store", "atomic"):
        requests, sectors, ideal = (totals[f"{kind}_{name}"] for name in ("requests", "sectors", "ideal_sectors"))
        if requests or kind != "atomic":
            rows.append(_row(f"  {kind}", requests, sectors, _ratio(sectors, requests), _ratio(ideal, requests)))
    rows += ["", _row("shared", "requests", "wavefronts", "per request", "bank conflicts")]
    for kind in ("load", "store", "atomic"):
        names = ("requests", "wavefronts", "bank_conflicts")
        requests, waves, conflicts = (totals[f"shared_{kind}_{name}"] for name in names)
        if requests or kind != "atomic":
            rows.append(_row(f"  {kind}", requests, waves, _ratio(waves, requests), conflicts))
    each = counters.thread_instructions / max(counters.threads, 1)
    return "\n".join([*rows, "", f"{counters.threads} threads, {each:.1f} PTX instructions each"])


def is_wasteful(access: Access) -> bool:
    """Whether an instruction has bank conflicts, or moves far more sectors than its bytes fill."""
    return access.bank_conflicts > 0 or access.sectors > WASTEFUL * access.ideal_sectors


def _cost(access: Access) -> str:
    if access.space == "global":
        each, ideal = _ratio(access.sectors, access.requests), _ratio(access.ideal_sectors, access.requests)
        return f"{access.kind}: {each} sectors a request, ideal {ideal}"
    if access.space != "shared":
        return f"{access.kind}: {access.space} memory"
    each = _ratio(access.wavefronts, access.requests)
    ideal = _ratio(access.conflict_free, access.requests)
    return f"shared {access.kind}: {each} wavefronts a request, {ideal} without bank conflicts"


def listing(counters: LaunchCounters, lines_of: Lines) -> str:
    """The source around the memory accesses, each with what it costs; ``>>`` marks the offending ones.

    Parameters
    ----------
    counters : LaunchCounters
        The launch, from PTX with source lines.
    lines_of : callable
        The lines of a file by its name in the PTX; None where they are not to be shown.

    Returns
    -------
    str
        A part for each file.
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


def source_lines(roots: Iterable[Path]) -> Lines:
    """Read the lines of sources, but of no others: a ``#line`` in a source may name any file of this machine.

    Parameters
    ----------
    roots : iterable of Path
        Files that may be shown, and folders below which all may be.

    Returns
    -------
    callable
        From a file's name to its lines; None if it is not there or not to be shown.
    """
    shown = [root.resolve() for root in roots]

    def lines_of(name: str) -> list[str] | None:
        try:
            path = Path(name).resolve()
            if any(path.is_relative_to(root) for root in shown):
                return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError, RuntimeError):  # the last two: no name of a file, links in a circle
            pass
        return None

    return lines_of
