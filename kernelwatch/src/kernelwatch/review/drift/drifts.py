"""Drifts: what became slower in steps too small for the review, and what a re-measurement said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import exp
from pathlib import Path

from kernelwatch.review.acknowledged import TIME, Acknowledged, beside
from kernelwatch.review.consecutive import between, consecutive
from kernelwatch.review.drift import remeasured
from kernelwatch.review.drift.levels import LEAST, rise
from kernelwatch.review.drift.remeasured import Remeasured
from kernelwatch.review.drift.stretches import Stretch, stretches
from kernelwatch.review.verdict import Judgement, Verdict
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
        `drifts.jsonl`, or the file of acknowledged regressions, is of another form.
    """
    every = stretches(consecutive(history))
    long = [stretch for stretch in every if len(stretch.commits) >= FEWEST]
    again = remeasured.read(history.folder)
    found = [_weighed(drift, stretch, again) for stretch in long for drift in _suspected(history.machine, stretch)]
    known = {drift.configuration for drift in found}
    found += [drift for drift in _confirmed(history, again) if drift.configuration not in known]
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


def _weighed(drift: Drift, stretch: Stretch, again: Iterable[Remeasured]) -> Drift:
    """The drift with what the last re-measurement from before it to the end of its stretch said."""
    places = {commit: place for place, commit in enumerate(stretch.commits)}
    for each in again:
        judged = each.judged.get(drift.configuration)
        before = places.get(each.base, len(places)) <= places[drift.first]
        if judged and before and places.get(each.head, -1) > len(places) - 1 - LEAST:
            states = {"SLOW": State.CONFIRMED, "SAME": State.REFUTED, "FAST": State.REFUTED}
            state = states.get(judged.verdict, State.SUSPECTED)
            ratio = judged.ratio if state is State.CONFIRMED else drift.ratio
            drift = replace(drift, state=state, ratio=ratio, reason=_when(each))
    return drift


def _confirmed(history: History, again: Iterable[Remeasured]) -> Iterator[Drift]:
    """What re-measurements found slower, unless the newest commit no longer is."""
    last = {name: each for each in again for name in each.judged}
    measured = history.commits()
    for each in {id(each): each for each in last.values()}.values():
        slow = {name for name, one in last.items() if one is each and each.judged[name].verdict == "SLOW"}
        if not slow or not {each.base, each.head} <= set(measured):
            continue
        now = {row.name: row for one in between(history, each.base, measured[-1], slow) for row in one.rows}
        for row in (row for one in between(history, each.base, each.head, slow) for row in one.rows):
            if now.get(row.name, row).judgement.verdict not in (Verdict.SAME, Verdict.FAST):
                yield Drift(
                    history.machine, row.name, row.benchmark, row.kernel, row.flags, each.base, each.head,
                    each.judged[row.name].ratio, row.judgement.threshold, 2, (), State.CONFIRMED, _when(each),
                )  # fmt: skip


def _when(again: Remeasured) -> str:
    return f"measured again {again.measured[:10]}"


def _accepted(drift: Drift, root: Path) -> Drift:
    """The drift; acknowledged, if a person has accepted one of its commits."""
    if drift.state is State.REFUTED:
        return drift
    slower = Judgement(Verdict.SLOW, drift.ratio)
    judged = Acknowledged(root, drift.first, drift.last).weigh(slower, drift.configuration, drift.kernel, TIME)
    accepted = judged.verdict is Verdict.ACKNOWLEDGED
    return replace(drift, state=State.ACKNOWLEDGED, reason=judged.reason) if accepted else drift


def _worst(drift: Drift) -> tuple[int, float, str]:
    return list(State).index(drift.state), -drift.ratio, drift.configuration
