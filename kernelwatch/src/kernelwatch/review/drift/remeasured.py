"""What re-measurements of suspected drifts said, kept in `drifts.jsonl` beside a machine's results: a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kernelwatch.review.commits import CannotCompareError, Sides
from kernelwatch.review.comparison import compare
from kernelwatch.store import folders, jsonl
from kernelwatch.store.results import TIMED

#: Not `.json`: asv takes every such file for results.
FILE = "drifts.jsonl"

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]


class Judged(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The review's verdict on a configuration, and the ratio of head to base."""

    verdict: Literal["SLOW", "UNDECIDED", "TRADE", "ACKNOWLEDGED", "NOTED", "FAST", "SAME"]
    ratio: Annotated[float, Meta(gt=0)]


class Remeasured(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Two commits that one run measured in turns: when it began, and the configurations that it measured of both."""

    base: _Hash
    head: _Hash
    measured: str
    judged: dict[str, Judged]


def read(folder: Path) -> list[Remeasured]:
    """Return what a machine's folder keeps, oldest first.

    Raises
    ------
    ValueError
        A line is of another form; the message, one line, names it.
    """
    found = []
    for place, entry in jsonl.lines(folder / FILE):
        try:
            found.append(msgspec.convert(entry, Remeasured))
        except msgspec.ValidationError as error:
            raise ValueError(f"{place}: {error}") from None
    return found


def keep(sides: Sides, root: Path) -> Remeasured:
    """Judge two commits by what their last common run measured of both, and add a line.

    Raises
    ------
    CannotCompareError
        No run measured times of both.
    """
    history = sides.history
    runs = {
        name: [history.runs_of(side.results, name) for side in (sides.base, sides.head)]
        for name in history.benchmarks("time")
    }
    common = {name: base[0] for name, (base, head) in runs.items() if base == head and len(base) == 1}
    rows = [row for row in compare(sides, root).rows if row.kind == TIMED and row.benchmark in common]
    if not rows:
        raise CannotCompareError(
            f"no run on {history.machine} measured times of both {sides.base.commit[:8]} and {sides.head.commit[:8]}; "
            f"run: make measure BASE={sides.base.commit[:8]} HEAD={sides.head.commit[:8]}"
        )
    judged = {row.name: Judged(row.judgement.verdict.value, row.judgement.ratio) for row in rows}
    found = Remeasured(sides.base.commit, sides.head.commit, max(run["started"] for run in common.values()), judged)
    folder = folders.written(root / "results") / history.machine
    folder.mkdir(parents=True, exist_ok=True)
    jsonl.append(folder / FILE, msgspec.to_builtins(found))
    return found
