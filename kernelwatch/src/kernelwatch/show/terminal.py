"""The comparison as text for a terminal, 100 columns wide: the first lines are the message."""

from __future__ import annotations

import os.path
import textwrap
from collections.abc import Iterator

from tabulate import tabulate

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.show import text

COLUMNS = 100

#: Characters that are told of why a configuration fails.
_LONGEST_REASON = 1000

#: The widest cells of the table under text.GROUP_HEADERS: what is longer is folded. The evidence has what is left.
_WIDEST = (40, 13, 8, 0, 20)
_EVIDENCE = 3

#: Columns between two cells.
_GAP = 2


def render(comparison: Comparison, at_least: float = 0.0, *, every: bool = False) -> str:
    """The verdict, the largest changes, and what changed by kernel and flags; with `every` each configuration, too.

    Parameters
    ----------
    comparison : Comparison
        The two commits.
    at_least : float
        The relative change from which on one is listed.
    every : bool
        Whether each configuration that changed is listed, however little.
    """
    return "\n".join(_lines(comparison, at_least, every)) + "\n"


def _lines(comparison: Comparison, at_least: float, every: bool) -> Iterator[str]:
    distance = f" ({comparison.distance})" if comparison.distance else ""
    route = " -> ".join(text.sides(comparison)) + distance
    yield from _wrapped(f"{comparison.conclusion.value}  {route}, {text.plain(comparison.machine)}")
    yield from _wrapped(text.counts(comparison))
    if comparison.choice:
        yield from _wrapped(comparison.choice)
    if comparison.broken:
        yield from _wrapped(f"Failing: {text.failing(comparison)}{'' if every else '; --all says why'}")
    for each in text.largest(comparison, at_least):
        yield from _wrapped(f"Largest: {each}")
    for title, told in text.TOLD.items():
        for each in told(comparison):
            yield from _wrapped(f"{title}: {each}")
    yield from _table(groups(comparison, at_least), every=every)
    more = "" if every else " +1 stands for one more difference: --all lists it."
    yield from _wrapped(text.folded(comparison, at_least) + more)
    for title, kernels, lines in text.asides(comparison):
        yield from _wrapped(f"{title}: {kernels}")
        for count, benchmark, reason in lines if every else ():
            yield from _wrapped(f"  {count} of {text.plain(benchmark)}: {reason}")
    for note in text.notes(comparison):
        yield from _wrapped(f"Note: {text.plain(note)}")
    if every:
        yield from _every(comparison)
    yield from _wrapped(text.legend(comparison))


def _table(found: list[Group], *, every: bool) -> Iterator[str]:
    """What changed by kernel and flags. What the names of all kernels begin with stands in the title.

    Without `every`, the evidence takes one line: more groups then fit on a screen.
    """
    body = [text.group_cells(group) for group in found]
    if not body:
        return
    names = {cells[0] for cells in body}
    # Names, not paths.
    common = os.path.commonprefix(sorted(names)).rpartition("_")[0] if len(names) > 1 else ""  # noqa: RUF071
    headers = [f"{common}_..." if common else text.GROUP_HEADERS[0], *text.GROUP_HEADERS[1:]]
    if common:
        body = [[name.removeprefix(f"{common}_"), *others] for name, *others in body]
    widest = [max(map(len, column)) for column in zip(headers, *body, strict=True)]
    widths = [min(limit, width) for limit, width in zip(_WIDEST, widest, strict=True)]
    widths[_EVIDENCE] = COLUMNS - _GAP * (len(widths) - 1) - sum(widths) + widths[_EVIDENCE]
    lacking = max(0, len(headers[_EVIDENCE]) - widths[_EVIDENCE])  # its title is not folded: the kernels' names are
    widths[0], widths[_EVIDENCE] = widths[0] - lacking, widths[_EVIDENCE] + lacking
    if not every:
        body = [
            [*cells[:_EVIDENCE], _first(cells[_EVIDENCE], widths[_EVIDENCE]), *cells[_EVIDENCE + 1 :]] for cells in body
        ]
    body = [[_folded(cell, width) for cell, width in zip(cells, widths, strict=True)] for cells in body]
    # Not as headers, whose columns tabulate makes wider.
    shown = tabulate([headers, *body], tablefmt="plain", disable_numparse=True, colalign=text.GROUP_ALIGN)
    yield from (line.rstrip() for line in shown.splitlines())


def _first(cell: str, width: int) -> str:
    """The first items of a cell that fit into one line, or else one that does, and how many are left: "-4 %, +2"."""
    items = cell.split(", ")
    parts = [items[:count] for count in range(len(items), 0, -1)] + [[item] for item in items]
    lines = [", ".join([*part, *([f"+{len(items) - len(part)}"] if len(part) < len(items) else [])]) for part in parts]
    return next((line for line in lines if len(line) <= width), cell)


def _folded(cell: str, width: int) -> str:
    """A cell in lines of a width, broken between its items where each fits into one."""
    items = [item.replace(" ", "\xa0") if len(item) < width else item for item in cell.split(", ")]
    return "\n".join(textwrap.wrap(", ".join(items), width, break_on_hyphens=False)).replace("\xa0", " ")


def _every(comparison: Comparison) -> Iterator[str]:
    """Each configuration that fails or changed, worst first: its name, and below what is known of it."""
    for lone in comparison.broken:
        yield from _wrapped(f"FAILING  {text.plain(lone.name)}")
        yield from _wrapped(f"{'':9}{text.plain(lone.reason, _LONGEST_REASON)}")
    for row in comparison.changed:
        verdict, name, *_ = text.cells(row, comparison.peak)
        yield from _wrapped(f"{verdict:9}{name}")
        yield from _wrapped(f"{'':9}{_details(row, comparison.peak)}")


def _details(row: Row, peak: float | None) -> str:
    _, _, base, head, *others = text.cells(row, peak)
    named = (f"{name} {cell}" for name, cell in zip(text.HEADERS[4:-1], others, strict=False) if cell)
    return "; ".join(filter(None, [f"{base} -> {head}", *named, others[-1]]))


def _wrapped(line: str) -> list[str]:
    """A line in as many as it takes, further ones indented."""
    return textwrap.wrap(line, COLUMNS, subsequent_indent="         ", break_on_hyphens=False)
