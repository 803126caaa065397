"""The comparison as text for a terminal, 100 columns wide: the first lines are the message."""

from __future__ import annotations

import os.path
import textwrap
from collections.abc import Iterator

from tabulate import tabulate

from kernelwatch.review.comparison import Comparison
from kernelwatch.show.report import report
from ptxcount.gate.blocks import Block, Heading, Items, Paragraph, Table

COLUMNS = 100

#: The widest cells of the table by kernel and flags: what is longer is folded. The evidence has what is left.
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
    return "".join(f"{line}\n" for block in report(comparison, at_least) for line in _lines(block, every))


def _lines(block: Block, every: bool) -> Iterator[str]:
    if isinstance(block, Heading):
        distance = f" ({block.distance})" if block.distance else ""
        yield from wrapped(f"{block.verdict}  {' -> '.join(block.route)}{distance}, {block.place}")
    elif isinstance(block, Paragraph):
        yield from wrapped(": ".join(filter(None, [block.label, "".join(block.parts)])))
    elif isinstance(block, Items):
        if block.summary:
            yield from wrapped(f"{block.title}: {block.summary}{'' if every else '; --all says why'}")
        before = "  " if block.summary else f"{block.title}: "
        for item in block.items if every or not block.summary else ():
            yield from wrapped(before + "".join(item))
    elif not block.title:
        yield from _table(block, every=every)
    elif every:
        yield from _records(block)


def _table(table: Table, *, every: bool) -> Iterator[str]:
    """What changed by kernel and flags. What the names of all kernels begin with stands in the title.

    Without `every`, the evidence takes one line: more groups then fit on a screen.
    """
    body, headers = [list(row) for row in table.rows], list(table.headers)
    names = {cells[0] for cells in body}
    # Names, not paths.
    common = os.path.commonprefix(sorted(names)).rpartition("_")[0] if len(names) > 1 else ""  # noqa: RUF071
    if common:
        headers[0] = f"{common}_..."
        body = [[name.removeprefix(f"{common}_"), *others] for name, *others in body]
    widest = [max(map(len, column)) for column in zip(headers, *body, strict=True)]
    widths = [min(limit, width) for limit, width in zip(_WIDEST, widest, strict=True)]
    widths[_EVIDENCE] = COLUMNS - _GAP * (len(widths) - 1) - sum(widths) + widths[_EVIDENCE]
    lacking = max(0, len(headers[_EVIDENCE]) - widths[_EVIDENCE])  # its title is not folded: the kernels' names are
    widths[0], widths[_EVIDENCE] = widths[0] - lacking, widths[_EVIDENCE] + lacking
    for cells in () if every else body:
        cells[_EVIDENCE] = _first(cells[_EVIDENCE], widths[_EVIDENCE])
    body = [[_folded(cell, width) for cell, width in zip(cells, widths, strict=True)] for cells in body]
    # Not as headers, whose columns tabulate makes wider.
    shown = tabulate([headers, *body], tablefmt="plain", disable_numparse=True, colalign=table.align)
    yield from (line.rstrip() for line in shown.splitlines())
    if not every and ", +" in shown:
        yield "+1 stands for one more difference: --all lists it."


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


def _records(table: Table) -> Iterator[str]:
    """Each row's verdict and configuration, and below what is known of it, worst first."""
    for verdict, name, base, head, *others in table.rows:
        named = (f"{title} {cell}" for title, cell in zip(table.headers[4:-1], others, strict=False) if cell)
        yield from wrapped(f"{verdict:9}{name}")
        yield from wrapped(f"{'':9}{'; '.join(filter(None, [f'{base} -> {head}', *named, others[-1]]))}")


def wrapped(line: str) -> list[str]:
    """A line in as many as it takes, further ones indented."""
    return textwrap.wrap(line, COLUMNS, subsequent_indent="         ", break_on_hyphens=False)
