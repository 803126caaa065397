"""The annotated sources on the page Transactions: the checkout's kernels with the costs of their source lines."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.counting import source_lines
from kernelwatch.errors import ERRORS
from kernelwatch.store.models import AccessCost, CostsLine
from kernelwatch.suite import registry

#: Message for a kernel whose current source was never counted.
NOT_COUNTED = "no stored run has counted this source; run: kernelwatch run"

#: Side of a square of a picture, in pixels.
_SIDE = 6


def list_sources(results: Path) -> list[dict[str, Any]]:
    """Return a launch of each counted kernel with the annotated source lines, or with the problem."""
    stored = source_lines.read_lines(results)
    sources = []
    for launch in source_lines.select_launches():
        costs_line, file, problem = None, "", NOT_COUNTED
        try:
            costs_line = stored.get(source_lines.launch_key(launch))
            file = registry.find_kernel(launch.kernel).source.name
        except ERRORS as error:  # a kernel of earlier commits without a file in this checkout
            problem = str(error)
        lines = list_rows(costs_line) if costs_line else []
        listing = {"lines": lines, "problem": None if costs_line else problem}
        sources.append({"kernel": launch.kernel, "file": file, "launch": str(launch), **listing})
    return sources


def list_rows(costs_line: CostsLine) -> list[dict[str, Any]]:
    """Return the rows of a listing. A source line has its costs, its share of all costs, and a picture of a request."""
    total = sum(access.amount for access in costs_line.accesses) or 1
    rows: list[dict[str, Any]] = []
    file = 0
    for text in costs_line.text.splitlines():
        if cost := source_lines.COST.fullmatch(text):  # a cost of the line before; wasteful accesses come first
            costs = rows[-1]["costs"] if rows else []
            costs.insert(0 if cost["mark"] == ">>" else len(costs), cost["text"])
        elif line := source_lines.LINE.fullmatch(text):
            place = file, int(line["number"])
            accesses = [access for access in costs_line.accesses if (access.file, access.line) == place]
            worst = max((access for access in accesses if access.now), key=lambda access: access.amount, default=None)
            picture = worst and [_draw_picture("now", worst, worst.now), _draw_picture("at best", worst, worst.best)]
            share = sum(access.amount for access in accesses) / total
            row = {"number": line["number"], "code": line["text"], "share": share}
            rows.append({**row, "costs": [], "is_costly": line["mark"] == ">>", "picture": picture})
        else:  # the name of another file, or a gap
            file += text.endswith(":")
            row = {"number": "", "code": text.strip(), "share": 0.0}
            rows.append({**row, "costs": [], "is_costly": False, "picture": None})
    return rows


def _draw_picture(name: str, cost: AccessCost, rows: Sequence[int]) -> dict[str, Any]:
    """Return a picture of a request: a row for each sector or wavefront, and a column for each lane or bank."""
    unit = cost.unit if len(rows) != 1 else cost.unit.removesuffix("s")
    return {
        "label": f"{name}: {len(rows)} {unit}",
        "columns": "lanes" if cost.unit == "sectors" else "banks",
        "width": 32 * _SIDE,
        "height": len(rows) * _SIDE,
        "path": "".join(_draw_row(row_number, lanes) for row_number, lanes in enumerate(rows)),
    }


def _draw_row(row: int, lanes: int) -> str:
    """Return the SVG path of a row: one segment for each run of adjacent lanes, in which CSS makes a dash per lane."""
    runs = re.finditer("1+", f"{lanes:032b}"[::-1])
    return "".join(f"M{run.start() * _SIDE} {row * _SIDE + 2.5}h{len(run[0]) * _SIDE - 1}" for run in runs)
