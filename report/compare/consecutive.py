"""The review of every measured commit of a machine against the last commits that measured the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from report.compare.acknowledged import beside
from report.compare.commits import CannotCompareError, Side, Sides
from report.compare.comparison import Comparison, compare
from report.results import History


@dataclass(frozen=True)
class Step:
    """A measured commit, and what the review says of it.

    Parameters
    ----------
    head : str
        The commit's hash.
    previous : str
        The commit that was measured before it, whatever it measured.
    new : int
        How many configurations no commit before had measured.
    comparisons : list of Comparison
        With each commit that was the last to measure some configurations, of those alone.
    notes : list of str
        Why others could not be compared.
    """

    head: str
    previous: str
    new: int
    comparisons: list[Comparison]
    notes: list[str]


def consecutive(history: History) -> Iterator[Step]:
    """Yield the steps of a machine's history, oldest first.

    A run may measure a part of the suite. So each configuration is compared with the last commit that measured it.

    Parameters
    ----------
    history : History
        The stored results of the machine.
    """
    commits = history.commits()
    measured = {commit: _measured(history, commit) for commit in commits}
    for place, head in enumerate(commits[1:], start=1):
        missing = set(measured[head])
        found: list[Comparison] = []
        notes: list[str] = []
        for base in reversed(commits[:place]):
            if shared := missing & measured[base]:
                missing -= shared
                try:
                    found += between(history, base, head, shared)
                except CannotCompareError as error:
                    notes.append(str(error))
        yield Step(head, commits[place - 1], len(missing), found, notes)


def between(history: History, base: str, head: str, names: set[str]) -> Iterator[Comparison]:
    """The comparison of two commits, of those configurations alone; none if they share no environment of asv's."""
    sides = [history.environments(commit) for commit in (base, head)]
    if shared := sorted(set(sides[0]) & set(sides[1])):
        one, two = (Side(commit, commit, side[shared[-1]]) for commit, side in zip((base, head), sides, strict=True))
        yield compare(Sides(history, one, two), beside(history.results), names=names)


def _measured(history: History, commit: str) -> set[str]:
    """The names of the configurations that have a value."""
    names = history.benchmarks("time") + history.benchmarks("track")
    return {
        point.name(name)
        for results in history.environments(commit).values()
        for name in names
        for point in history.points(results, name)
        if point.value is not None
    }
