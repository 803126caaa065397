"""Slowdowns too gradual for the review of neighbours: the review of the ends of a row of commits: `kernelwatch drift`.

A row ends where the review told a change, or where another GPU measured that may differ by as much.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from tabulate import tabulate

from kernelwatch.command import one_line, without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.review.conclusion import doubts
from kernelwatch.review.consecutive import Step, between, consecutive
from kernelwatch.review.reasons import NOT_AGAIN
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import TOLD, Verdict, percent
from kernelwatch.show.text import plain, short_flags
from kernelwatch.store import folders
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED, History

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 2

#: Commits that a row needs: two are neighbours, which the review compares by itself.
FEWEST = 3

_CONCLUSIONS = {0: "NO DRIFT", 1: "DRIFT", 2: "UNDECIDED"}

_HEADERS = ["drift", "kernel", "flags", "time", "configurations", "from", "to", "why"]

_EPILOG = """\
exit codes:
  0  no drift
  1  a drift: the review calls the last commit of a row SLOWER than the first
  2  undecided: so many times are that they could hide one, or no time of a machine has enough commits in a row;
     or something unforeseen happened

docs/drift.md says what a drift is, and how one is confirmed.
"""


@dataclass
class Stretch:
    """Neighbouring commits, oldest first, of which the review told no change of a configuration's time.

    `seconds` is the last commit's time. Some of the commits `changed` the machine code, where a run said so.
    """

    name: str
    commits: list[str]
    seconds: float
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Drift:
    """The review of a stretch's last commit against its first, if it is not the same."""

    stretch: Stretch
    row: Row

    @property
    def ends(self) -> tuple[str, str]:
        """The first commit and the last."""
        return self.stretch.commits[0], self.stretch.commits[-1]

    @property
    def why(self) -> str:
        """Why it is undecided or accepted; else where the machine code changed."""
        if self.row.judgement.verdict is not Verdict.SLOWER:
            return self.row.judgement.reason
        commits = ", ".join(commit[:8] for commit in self.stretch.changed)
        return f"machine code changed at {commits}" if commits else "no run noted another machine code"


@dataclass(frozen=True)
class Found:
    """What was looked at on a machine: the drifts, the review's rows, and the commits of the longest stretch."""

    machine: str
    drifts: list[Drift]
    rows: list[Row]
    longest: int

    @property
    def exit_code(self) -> int:
        """0: no drift; 1: one that nobody acknowledged; 2: undecided."""
        if any(each.row.judgement.verdict is Verdict.SLOWER for each in self.drifts):
            return 1
        return 2 if not self.rows or any(doubts(self.rows)) else 0


def stretches(steps: Iterable[Step]) -> list[Stretch]:
    """Divide the times of each configuration where the review told a change, or another kind of GPU measured."""
    found: list[Stretch] = []
    current: dict[str, Stretch] = {}
    for head, base, row in ((step.head, each.base.commit, row) for step in steps for each in step.comparisons
                            for row in each.rows):  # fmt: skip
        # A time that was taken over says nothing new.
        if row.kind != TIMED or min(row.base, row.head) <= 0 or NOT_AGAIN in row.judgement.reasons:
            continue
        if row.judgement.verdict in TOLD or row.judgement.threshold >= ANOTHER_GPU:
            current.pop(row.name, None)
            continue
        stretch = current.get(row.name)
        if stretch is None or stretch.seconds != row.base:  # in another of asv's environments
            stretch = current[row.name] = Stretch(row.name, [base], row.base)
            found.append(stretch)
        stretch.commits.append(head)
        stretch.seconds = row.head
        if row.code_unchanged is False:
            stretch.changed.append(head)
    return found


def find(history: History) -> Found | None:
    """Look for drifts in all that is stored of a machine; None if nothing was timed.

    Raises
    ------
    CannotCompareError
        The file of acknowledged regressions, or another that the review needs, is of another form.
    """
    every = stretches(consecutive(history))
    pairs: dict[tuple[str, str], dict[str, Stretch]] = defaultdict(dict)
    for each in every:
        if len(each.commits) >= FEWEST:
            pairs[each.commits[0], each.commits[-1]][each.name] = each
    rows, drifts = list[Row](), list[Drift]()
    for (first, last), named in pairs.items():
        judged = [row for one in between(history, first, last, set(named)) for row in one.rows]
        drifts += [Drift(named[row.name], row) for row in judged if _is_told(row)]
        rows += judged
    timed = every or any(
        next(history.times(results), None)
        for commit in history.commits()
        for results in history.environments(commit).values()
    )
    drifts.sort(key=lambda each: each.row.badness())
    longest = max((len(each.commits) for each in every), default=0)
    return Found(history.machine, drifts, rows, longest) if timed else None


def _is_told(row: Row) -> bool:
    return row.judgement.verdict in (Verdict.SLOWER, Verdict.ACKNOWLEDGED) or row.judgement.could_be_slower


def confirming(machine: str, drifts: Sequence[Drift]) -> list[str]:
    """Return what measures the ends again in turns, and what tells the answer. All drifts have the same ends."""
    first, last = (commit[:8] for commit in drifts[0].ends)
    benches = " ".join(f"--bench {name}" for name in sorted({each.row.benchmark for each in drifts}))
    return [
        f'make measure BASE={first} HEAD={last} ARGS="--attribute rounds=4 {benches}"',
        f"make compare BASE={first} HEAD={last} MACHINE={machine}",
    ]


def as_json(every: Sequence[Found]) -> str:
    """Return all drifts, those that are accepted too, with the commands that confirm them."""
    machines = [
        {"machine": each.machine, "exit_code": each.exit_code, "judged": len(each.rows), "longest": each.longest,
         "drifts": [_told(each.machine, drift) for drift in each.drifts]}
        for each in every
    ]  # fmt: skip
    document = {"format": FORMAT, "exit_code": _exit_code(every), "machines": machines}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _told(machine: str, drift: Drift) -> dict[str, Any]:
    row, (first, last) = drift.row, drift.ends
    return {
        "configuration": row.name, "kernel": row.kernel, "flags": row.flags, "verdict": row.judgement.verdict.value,
        "ratio": row.judgement.ratio, "threshold": row.judgement.threshold, "first": first, "last": last,
        "commits": len(drift.stretch.commits), "changed": drift.stretch.changed, "why": drift.why,
        "confirm": confirming(machine, [drift]),
    }  # fmt: skip


def _exit_code(every: Sequence[Found]) -> int:
    codes = {each.exit_code for each in every}
    return next(code for code in (1, 2, 0) if code in codes)


def text(every: Sequence[Found]) -> str:
    """Return of each machine the verdict, what drifts by kernel and flags, and what to do."""
    return "\n".join(line for each in every for line in _lines(each)) + "\n"


def _lines(found: Found) -> Iterator[str]:
    yield f"{_CONCLUSIONS[found.exit_code]}  {plain(found.machine)}"
    yield f"{len(found.rows)} times have {FEWEST} commits or more in a row; the longest row has {found.longest}"
    groups: dict[tuple[str, ...], list[Drift]] = defaultdict(list)
    again: dict[tuple[str, str], list[Drift]] = defaultdict(list)
    for each in found.drifts:
        verdict = each.row.judgement.verdict
        key = (verdict.value, each.row.kernel, each.row.flags, *each.ends, each.why)
        groups[key].append(each)
        if verdict is not Verdict.ACKNOWLEDGED:
            again[each.ends].append(each)
    if groups:
        body = [
            [verdict, plain(kernel), short_flags(flags), _mean(alike), len(alike), first[:8], last[:8], plain(why)]
            for (verdict, kernel, flags, first, last, why), alike in groups.items()
        ]  # fmt: skip
        yield str(tabulate(body, _HEADERS, tablefmt="plain", disable_numparse=True))
    for drifts in again.values():
        yield "To confirm, on the machine:"
        yield from (f"  {command}" for command in confirming(found.machine, drifts))
    if not found.rows:
        yield "A row ends where the review sees a change, or another GPU measured that may differ by as much."


def _mean(drifts: Iterable[Drift]) -> str:
    return percent(geometric_mean(each.row.judgement.ratio for each in drifts))


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the drifts; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Say what became slower in steps too small for the review.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--machine", help="whose results (default: all machines)")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    options = parser.parse_args(words)
    names = [options.machine] if options.machine else folders.machines(root / "results")
    try:
        every = [found for name in names if (found := find(History(name, root)))]
    except (FileNotFoundError, ValueError, CannotCompareError) as error:
        print(f"cannot look for drifts: {one_line(error)}", file=sys.stderr)
        return 2
    if not every:
        print(
            "cannot look for drifts: no machine has times; run: asv run --record-samples HEAD^! where a GPU is",
            file=sys.stderr,
        )
        return 2
    sys.stdout.write((as_json if options.json else text)(every))
    return _exit_code(every)
