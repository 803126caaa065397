"""Drifts: what became slower in steps too small for the review, and what a re-measurement said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from enum import Enum
from math import exp
from pathlib import Path

from kernelwatch.review.acknowledged import TIME, Acknowledged, beside
from kernelwatch.review.consecutive import between, consecutive
from kernelwatch.review.drift.levels import LEAST, rise
from kernelwatch.review.drift.stretches import Stretch, stretches
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import TOLD, Judgement, Verdict
from kernelwatch.store.results import History

#: Commits that a stretch needs: two levels.
FEWEST = 2 * LEAST


class State(Enum):
    """What is known of a drift, worst first."""

    CONFIRMED = "CONFIRMED"
    SUSPECTED = "SUSPECTED"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    REFUTED = "REFUTED"


@dataclass(frozen=True)
class Drift:
    """One configuration that became slower over so many `commits`: by `ratio`, which exceeds the `threshold`.

    `first` and `last` are the commits to measure again: the last at the lowest level, and the newest. Those in between
    `changed` the machine code, where a run said so. `reason` says why it is acknowledged, or when it was measured
    again.
    """

    machine: str
    configuration: str
    benchmark: str
    kernel: str
    flags: str
    first: str
    last: str
    ratio: float
    threshold: float
    commits: int
    changed: tuple[str, ...] = ()
    state: State = State.SUSPECTED
    reason: str = ""


@dataclass(frozen=True)
class Again:
    """Two commits that one run measured in turns, when it began, and the review's rows of the times that are its."""

    base: str
    head: str
    measured: str
    rows: dict[str, Row]


@dataclass(frozen=True)
class Found:
    """The drifts of a machine, worst first, and how many configurations could be judged over how many commits."""

    machine: str
    drifts: list[Drift]
    judged: int
    longest: int


def has_times(history: History) -> bool:
    """Whether anything was timed: on a machine without a GPU nothing is."""
    every = (results for commit in history.commits() for results in history.environments(commit).values())
    return any(next(history.times(results), None) for results in every)


def find(history: History) -> Found:
    """Look for drifts in all that is stored of a machine.

    Raises
    ------
    ValueError
        The file of acknowledged regressions is of another form.
    """
    steps = list(consecutive(history))
    every = stretches(steps)
    long = [stretch for stretch in every if len(stretch.commits) >= FEWEST]
    again = list(_again(history))
    found = [_weighed(drift, stretch, again) for stretch in long for drift in _suspected(history.machine, stretch)]
    known = {drift.configuration for drift in found}
    told = {(row.name, step.head) for step in steps for one in step.comparisons for row in one.rows
            if row.judgement.verdict in TOLD}  # fmt: skip
    found += [drift for drift in _confirmed(history, again, told) if drift.configuration not in known]
    return Found(
        machine=history.machine,
        drifts=sorted((_accepted(drift, beside(history.results)) for drift in found), key=_worst),
        judged=len({stretch.row.name for stretch in long}),
        longest=max((len(stretch.commits) for stretch in every), default=0),
    )


def _suspected(machine: str, stretch: Stretch) -> Iterator[Drift]:
    found = rise(stretch.seconds, stretch.threshold)
    if found is not None:
        changed = tuple(commit for commit in stretch.changed if commit in stretch.commits[found.first + 1 :])
        row, first, last = stretch.row, stretch.commits[found.first], stretch.commits[-1]
        yield Drift(
            machine, row.name, row.benchmark, row.kernel, row.flags, first, last,
            exp(found.size), stretch.threshold, len(stretch.commits), changed,
        )  # fmt: skip


def _again(history: History) -> Iterator[Again]:
    """Yield what was measured again, oldest first: of a run that measured two commits alone, what none did later."""
    places = {commit: place for place, commit in enumerate(history.commits())}
    for run in history.runs:
        if len(run["commits"]) != 2 or not set(run["commits"]) <= set(places):
            continue
        base, head = sorted(run["commits"], key=places.__getitem__)
        both = [history.commit(commit) for commit in (base, head)]
        names = {
            point.name(benchmark)
            for benchmark in history.benchmarks("time")
            if all(one is not None and history.runs_of(one, benchmark) == [run] for one in both)
            for one in both
            for point in history.points(one, benchmark)
        }
        rows = {row.name: row for one in between(history, base, head, names) for row in one.rows} if names else {}
        if rows:
            yield Again(base, head, run["started"], rows)


def _weighed(drift: Drift, stretch: Stretch, again: Iterable[Again]) -> Drift:
    """The drift with what the last re-measurement from before it to the end of its stretch said."""
    places = {commit: place for place, commit in enumerate(stretch.commits)}
    for each in again:
        row = each.rows.get(drift.configuration)
        before = places.get(each.base, len(places)) <= places[drift.first]
        if row and before and places.get(each.head, -1) > len(places) - 1 - LEAST:
            states = {Verdict.SLOWER: State.CONFIRMED, Verdict.SAME: State.REFUTED, Verdict.FASTER: State.REFUTED}
            state = states.get(row.judgement.verdict, State.SUSPECTED)
            ratio = row.judgement.ratio if state is State.CONFIRMED else drift.ratio
            drift = replace(drift, state=state, ratio=ratio, reason=_when(each))
    return drift


def _confirmed(history: History, again: Iterable[Again], told: Set[tuple[str, str]]) -> Iterator[Drift]:
    """What re-measurements found slower and no review of neighbours told, unless the newest commit no longer is."""
    commits = history.commits()
    last = {name: each for each in again for name in each.rows}
    for name, each in last.items():
        row = each.rows[name]
        span = commits[commits.index(each.base) + 1 : commits.index(each.head) + 1]
        if row.judgement.verdict is not Verdict.SLOWER or any((name, commit) in told for commit in span):
            continue
        now = next((row for one in between(history, each.base, commits[-1], {name}) for row in one.rows), row)
        if now.judgement.verdict not in (Verdict.SAME, Verdict.FASTER):
            yield Drift(
                history.machine, name, row.benchmark, row.kernel, row.flags, each.base, each.head,
                row.judgement.ratio, row.judgement.threshold, 2, (), State.CONFIRMED, _when(each),
            )  # fmt: skip


def _when(again: Again) -> str:
    return f"measured again {again.measured[:10]}"


def _accepted(drift: Drift, root: Path) -> Drift:
    """The drift; acknowledged, if a person has accepted one of its commits."""
    if drift.state is State.REFUTED:
        return drift
    slower = Judgement(Verdict.SLOWER, drift.ratio)
    judged = Acknowledged(root, drift.first, drift.last).weigh(slower, drift.configuration, drift.kernel, TIME)
    accepted = judged.verdict is Verdict.ACKNOWLEDGED
    return replace(drift, state=State.ACKNOWLEDGED, reason=judged.reason) if accepted else drift


def _worst(drift: Drift) -> tuple[int, float, str]:
    return list(State).index(drift.state), -drift.ratio, drift.configuration
