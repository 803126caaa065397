"""Slowdowns too gradual for the review of neighbours: the review of the ends of a row of commits.

A row ends where the review told a change, or where another GPU measured that may differ by as much.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.conclusion import doubts
from kernelwatch.review.consecutive import Step, between, consecutive
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import NOT_AGAIN, TOLD, Verdict
from kernelwatch.show import as_json, report
from kernelwatch.show.text import plain
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED, History

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 4

#: Commits that a row needs: two are neighbours, which the review compares by itself.
FEWEST = 3

_CONCLUSIONS = {0: "NO DRIFT", 1: "DRIFT", 2: "UNDECIDED"}


@dataclass
class Stretch:
    """Neighbouring commits, oldest first, of which the review told no change of a configuration's time.

    `seconds` is the last commit's time.
    """

    name: str
    environment: str
    commits: list[str]
    seconds: float


@dataclass(frozen=True)
class Found:
    """What was looked at on a machine.

    `drifts` are the reviews of the ends of stretches, of those times alone that are or could be slower, the worst
    first. So many times were `judged`.
    """

    machine: str
    drifts: list[Comparison]
    judged: list[Row]

    @property
    def exit_code(self) -> int:
        """0: no drift; 1: one that nobody acknowledged; 2: undecided."""
        if any(row.judgement.verdict is Verdict.SLOWER for row in self.judged):
            return 1
        return 2 if not self.judged or any(doubts(self.judged)) else 0


def stretches(steps: Iterable[Step]) -> list[Stretch]:
    """Divide the times of each configuration where the review told a change, or another kind of GPU measured."""
    found: list[Stretch] = []
    current: dict[tuple[str, str], Stretch] = {}
    for head, one, row in ((step.head, each, row) for step in steps for each in step.comparisons for row in each.rows):
        # A time that was taken over says nothing new.
        if row.kind != TIMED or min(row.base, row.head) <= 0 or NOT_AGAIN in row.judgement.reasons:
            continue
        key = one.environment, row.name
        if row.judgement.verdict in TOLD or row.judgement.threshold >= ANOTHER_GPU:
            current.pop(key, None)
            continue
        stretch = current.get(key)
        if stretch is None or stretch.seconds != row.base:
            stretch = current[key] = Stretch(row.name, one.environment, [one.base.commit], row.base)
            found.append(stretch)
        stretch.commits.append(head)
        stretch.seconds = row.head
    return found


def find(history: History) -> Found | None:
    """Look for drifts in all that is stored of a machine; None if nothing was timed.

    Raises
    ------
    CannotCompareError
        The file of acknowledged regressions, or another that the review needs, is of another form.
    """
    every = [results for commit in history.commits() for results in history.environments(commit).values()]
    if not any(next(history.times(results), None) for results in every):
        return None
    ends: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for each in stretches(consecutive(history)):
        if len(each.commits) >= FEWEST:
            ends[each.commits[0], each.commits[-1], each.environment].add(each.name)
    reviews = [between(history, *each, names) for each, names in ends.items()]
    told = [replace(review, rows=list(filter(_is_told, review.rows))) for review in reviews]
    drifts = sorted((each for each in told if each.rows), key=lambda each: each.rows[0].badness())
    return Found(history.machine, drifts, [row for review in reviews for row in review.rows])


def _is_told(row: Row) -> bool:
    return row.judgement.verdict in (Verdict.SLOWER, Verdict.ACKNOWLEDGED) or row.judgement.could_be_slower


def confirming(drift: Comparison) -> list[str]:
    """Return what measures the ends again in turns, and what tells the answer."""
    ends = f"{drift.base.commit[:8]} {drift.head.commit[:8]}"
    benches = " ".join(f"--bench {name}" for name in sorted({row.benchmark for row in drift.rows}))
    return [
        f"kernelwatch measure {ends} --attribute rounds=4 {benches}",
        f"kernelwatch compare {ends} --machine {drift.machine}",
    ]


def exit_code(every: Sequence[Found]) -> int:
    """Return that on all machines: a drift of one counts, else that one is undecided."""
    codes = {each.exit_code for each in every}
    return next(code for code in (1, 2, 0) if code in codes)


def document(every: Sequence[Found]) -> str:
    """Return all drifts as JSON: the review of each, those that are accepted too, and the commands that confirm it."""
    machines = [
        {"machine": each.machine, "exit_code": each.exit_code, "judged": len(each.judged),
         "drifts": [{**json.loads(as_json.render(one)), "confirm": confirming(one)} for one in each.drifts]}
        for each in every
    ]  # fmt: skip
    return json.dumps({"format": FORMAT, "exit_code": exit_code(every), "machines": machines}, indent=1) + "\n"


def text(every: Sequence[Found]) -> str:
    """Return of each machine the verdict, the review of what drifts, and what to do."""
    return "".join(f"{line}\n" for each in every for line in _lines(each))


def _lines(found: Found) -> Iterator[str]:
    yield f"{_CONCLUSIONS[found.exit_code]}  {plain(found.machine)}"
    yield f"{len(found.judged)} times have {FEWEST} commits or more in a row"
    for each in found.drifts:
        yield from ("", report.render(each).rstrip("\n"))
        if any(row.judgement.verdict is not Verdict.ACKNOWLEDGED for row in each.rows):
            yield from ("To confirm, on the machine:", *(f"  {command}" for command in confirming(each)))
    if not found.judged:
        yield "A row ends where the review sees a change, or another GPU measured that may differ by as much."
