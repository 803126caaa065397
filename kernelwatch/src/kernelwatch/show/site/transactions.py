"""What the page Transactions shows of the current checkout: the kernels' source with what each line costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.counting import source_lines
from kernelwatch.errors import ERRORS
from kernelwatch.store.models import AccessCost, CostsLine
from kernelwatch.suite import registry

#: Where no run has counted a kernel as it is now.
NOT_COUNTED = "no stored run has counted this source; run: kernelwatch run"

#: Pixels of a square of a picture.
_SIDE = 6


def list_sources(results: Path) -> list[dict[str, Any]]:
    """Return of each kernel of the catalog its launch, its annotated lines, or why there are none."""
    stored = source_lines.read_lines(results)
    shown = []
    for launch in source_lines.select_launches():
        costs_line, file, problem = None, "", NOT_COUNTED
        try:
            costs_line, file = stored.get(source_lines.launch_key(launch)), registry.find_kernel(launch.kernel).source.name
        except ERRORS as error:  # a row of earlier commits, whose file this checkout lacks
            problem = str(error)
        listing = {"lines": list_listing_rows(costs_line), "problem": None} if costs_line else {"lines": [], "problem": problem}
        shown.append({"kernel": launch.kernel, "file": file, "launch": str(launch), **listing})
    return shown


def list_listing_rows(costs_line: CostsLine) -> list[dict[str, Any]]:
    """Return the rows of a listing: number, code, costs, share of all that the kernel moves, and a picture."""
    total = sum(access.amount for access in costs_line.accesses) or 1
    rows: list[dict[str, Any]] = []
    file = 0
    for text in costs_line.text.splitlines():
        if cost := source_lines.COST.fullmatch(text):  # of the line before it; the wasteful ones first
            costs = rows[-1]["costs"] if rows else []
            costs.insert(0 if cost[1] == ">>" else len(costs), cost[2])
        elif line := source_lines.LINE.fullmatch(text):
            accesses = [access for access in costs_line.accesses if (access.file, access.line) == (file, int(line[2]))]
            worst = max((access for access in accesses if access.now), key=lambda each: each.amount, default=None)
            picture = worst and [_draw_picture("now", worst, worst.now), _draw_picture("at best", worst, worst.best)]
            row = {"number": line[2], "code": line[3], "share": sum(access.amount for access in accesses) / total}
            rows.append({**row, "costs": [], "is_costly": line[1] == ">>", "picture": picture})
        else:  # the name of a further file, or a gap
            file += text.endswith(":")
            row = {"number": "", "code": text.strip(), "share": 0.0}
            rows.append({**row, "costs": [], "is_costly": False, "picture": None})
    return rows


def _draw_picture(name: str, cost: AccessCost, rows: Sequence[int]) -> dict[str, Any]:
    """A picture as one path of squares: a row each sector or wavefront, a column each lane or bank."""
    squares = [(row_number, lane) for row_number, lanes in enumerate(rows) for lane in range(32) if lanes >> lane & 1]
    unit = cost.unit if len(rows) != 1 else cost.unit.removesuffix("s")
    return {
        "label": f"{name}: {len(rows)} {unit}",
        "columns": "lanes" if cost.unit == "sectors" else "banks",
        "width": 32 * _SIDE,
        "height": len(rows) * _SIDE,
        "path": "".join(f"M{lane * _SIDE} {row_number * _SIDE}h5v5h-5z" for row_number, lane in squares),
    }
