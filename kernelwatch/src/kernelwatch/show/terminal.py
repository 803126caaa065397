"""Lines and tables of at most COLUMNS columns."""

import os.path
import textwrap
from collections.abc import Iterator, Sequence

COLUMNS = 100

#: Maximum widths of the table's columns, in characters. The evidence gets the remaining width.
_MAX_WIDTHS = (40, 13, 8, 0, 20)
_ALIGN = ("left", "left", "right", "left", "left")
_EVIDENCE = 3

#: Number of spaces between two columns.
_GAP = 2


def wrap_line(line: str, indent: int = 9) -> list[str]:
    """Wrap a line; indent all but the first of the new lines. An empty line gives no line."""
    return textwrap.wrap(line, COLUMNS, subsequent_indent=" " * indent, break_on_hyphens=False)


def format_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, list_all: bool) -> Iterator[str]:
    """Yield the lines of the table by kernel and flags.

    A prefix that all kernels' names share is only in the title of their column. Without `list_all`, evidence is cut to
    its first item and those that fit in one line with it, so that more groups fit on a screen.
    """
    titles, body = list(headers), [list(row) for row in rows]
    names = {cells[0] for cells in body}
    # The function is for paths, but compares any texts.
    common = os.path.commonprefix(sorted(names)).rpartition("_")[0] if len(names) > 1 else ""  # noqa: RUF071
    if common:
        titles[0] = f"{common}_..."
        body = [[name.removeprefix(f"{common}_"), *other_cells] for name, *other_cells in body]
    longest = [max(map(len, column)) for column in zip(titles, *body, strict=True)]
    widths = list(map(min, _MAX_WIDTHS, longest))
    widths[_EVIDENCE] = COLUMNS - _GAP * (len(widths) - 1) - sum(widths)
    lacking = max(0, len(titles[_EVIDENCE]) - widths[_EVIDENCE])  # kernels' names can be wrapped, titles cannot
    widths[0], widths[_EVIDENCE] = widths[0] - lacking, widths[_EVIDENCE] + lacking
    if not list_all:
        for cells in body:
            cells[_EVIDENCE] = _shorten_cell(cells[_EVIDENCE], widths[_EVIDENCE])
    body = [[_fold_cell(cell, width) for cell, width in zip(cells, widths, strict=True)] for cells in body]
    from tabulate import tabulate  # noqa: PLC0415 -- slow to import, and not needed for the website

    # The titles are a row, because tabulate widens columns with headers.
    shown = tabulate([titles, *body], tablefmt="plain", disable_numparse=True, colalign=_ALIGN)
    yield from (line.rstrip() for line in shown.splitlines())
    if not list_all and ", +" in shown:
        yield "+N stands for N more differences: --all lists them."


def _shorten_cell(cell: str, width: int) -> str:
    """Cut a cell to its first item and those that fit, and say how many are omitted, as in "-4 %, +2"."""
    first, *further = cell.split(", ")
    if len(cell) <= width or not further:
        return cell
    shown = [first]
    for item in further:
        if len(", ".join([*shown, item, f"+{len(further) - len(shown)}"])) <= width:
            shown.append(item)
    return ", ".join([*shown, f"+{1 + len(further) - len(shown)}"])


def _fold_cell(cell: str, width: int) -> str:
    """Wrap a cell. Break only items that do not fit into a line."""
    items = [item.replace(" ", "\xa0") if len(item) < width else item for item in cell.split(", ")]
    return "\n".join(textwrap.wrap(", ".join(items), width, break_on_hyphens=False)).replace("\xa0", " ")
