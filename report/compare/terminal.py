"""The comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tabulate import tabulate

from report.compare import text
from report.compare.comparison import Comparison
from report.compare.verdict import Verdict


def render(comparison: Comparison) -> str:
    """Totals, then every row that changed, worst first."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = (f"{text.plain(side.given)} ({side.commit[:8]})" for side in (comparison.base, comparison.head))
    yield f"{' -> '.join(sides)} on {text.plain(comparison.machine)}: {text.headline(comparison)}"
    if comparison.rows:
        yield ""
        yield tabulate(
            text.totals(comparison), headers=["", *(verdict.value for verdict in Verdict)], disable_numparse=True
        )
    for note in comparison.notes:
        yield f"Note: {text.plain(note)}"
    if comparison.broken:
        yield ""
        yield f"{len(comparison.broken)} configurations fail in head and did not in base:"
        yield from (f"  {text.plain(lone.name)}" for lone in comparison.broken)
    if comparison.changed:
        body = [text.cells(row, comparison.peak) for row in comparison.changed]
        yield ""
        yield tabulate(body, headers=text.HEADERS, disable_numparse=True, colalign=text.ALIGN)
    yield ""
    yield text.folded(comparison)
    for title, lines in text.asides(comparison):
        yield f"{title}:"
        yield from (f"  {count} of {text.plain(benchmark)}: {reason}" for count, benchmark, reason in lines)
    yield text.legend(comparison)
