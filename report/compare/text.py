"""How numbers and names are written in the reports that people read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from report.compare.comparison import Comparison
from report.compare.rows import Lone, Row
from report.compare.verdict import Verdict
from report.results import KINDS

#: Seconds from which on a unit is used, and its name.
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))

#: A longer name is cut: names come from results, and none may fill a report.
_LONGEST_NAME = 240

HEADERS = ["verdict", "configuration", "base", "head", "ratio", "99 % interval", "copies", "GB/s", "% of peak", "why"]
ALIGN = ("left", "left", "right", "right", "right", "right", "right", "right", "right", "left")

CONCLUSIONS = {0: "no regression", 1: "regression", 2: "could not judge"}


def plain(name: object) -> str:
    """A name in one line that no terminal takes for a command."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def quantity(value: float, unit: str) -> str:
    """A value with a unit if that is of time; others are named by their benchmarks."""
    if unit != "seconds":
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    least, name = next((row for row in _SECONDS if abs(value) >= row[0]), _SECONDS[-1])
    return f"{value / (least or 1e-9):.4g} {name}"


def cells(row: Row, peak: float | None) -> list[str]:
    """A row of the table under HEADERS; % of peak is head's."""
    judged = row.judgement
    rates = row.rates
    return [
        judged.verdict.value,
        plain(row.name),
        quantity(row.base, row.unit),
        quantity(row.head, row.unit),
        "∞" if math.isinf(judged.ratio) else f"{judged.ratio:.3f}",
        "" if judged.interval is None else "{:.3f} to {:.3f}".format(*judged.interval),
        "" if row.copies is None else f"{row.copies.base:.3f} → {row.copies.head:.3f}",
        "" if rates is None else f"{rates[0] / 1e9:.0f} → {rates[1] / 1e9:.0f}",
        "" if rates is None or not peak else f"{100 * rates[1] / peak:.1f}",
        plain(judged.reason),
    ]


def headline(comparison: Comparison) -> str:
    """The result in one line."""
    counts = [(comparison.count(verdict), verdict.value) for verdict in Verdict] + [(len(comparison.broken), "failing")]
    found = ", ".join(f"{count} {name}" for count, name in counts if count) or "no configuration in both"
    return f"{CONCLUSIONS[comparison.exit_code]}: {found}"


def totals(comparison: Comparison) -> list[list[str]]:
    """Counts, a line a kind, for the headers "" and the verdicts."""
    return [
        [kind, *(str(comparison.count(verdict, kind)) for verdict in Verdict)]
        for kind in KINDS
        if any(comparison.count(verdict, kind) for verdict in Verdict)
    ]


#: How many configurations of which benchmark, and why the other commit lacks them.
Aside = tuple[int, str, str]


def asides(comparison: Comparison) -> Iterator[tuple[str, list[Aside]]]:
    """What only one commit has: a title, and its benchmarks, most configurations first."""
    for what, lone in (("only in base", comparison.only_base), ("only in head", comparison.only_head)):
        if lone:
            yield f"{len(lone)} configurations {what}", list(_counted(lone))


def _counted(lone: list[Lone]) -> Iterator[Aside]:
    for (benchmark, reason), count in Counter((each.benchmark, each.reason) for each in lone).most_common():
        yield count, benchmark, reason


def folded(comparison: Comparison) -> str:
    """The line that stands for everything that did not change."""
    return f"{comparison.count(Verdict.SAME)} configurations are SAME and not listed."


def legend(comparison: Comparison) -> str:
    """What the verdicts rest on, in a sentence or two."""
    return (
        "Lower is better; copies: the time in copies of the same bytes; GB/s are useful ones, % of the theoretical "
        "peak is head's. Times are SAME up to "
        f"{comparison.noise}; counted and compiled numbers only if equal."
    )
