"""The review of every measured commit of a machine against the last commits that measured the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from kernelwatch.review.acknowledged import beside
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.store.results import History


@dataclass(frozen=True)
class Step:
    """A measured commit `head`, and what the review says of it.

    `previous` was measured before it, whatever it measured; so many configurations are `new`, of which no commit before
    has any. `comparisons` are with each commit that was the last to measure some of the others, of those alone; `notes`
    say why some could not be compared.
    """

    head: str
    previous: str
    new: int
    comparisons: list[Comparison]
    notes: list[str]


@dataclass(frozen=True)
class Task:
    """What is to be compared for a `Step`: `shared` has the configurations by the commit that measured them last."""

    head: str
    previous: str
    new: int
    shared: dict[str, set[str]]


def consecutive(history: History) -> Iterator[Step]:
    """Yield the steps of a machine's history, oldest first."""
    return (step(history, task) for task in tasks(history.commits(), lambda commit: measured(history, commit)))


def tasks(commits: Sequence[str], measured: Callable[[str], Set[str]]) -> Iterator[Task]:
    """Yield what is to be compared, oldest first, of `commits` in that order.

    A run may measure a part of the suite. So each configuration is compared with the last commit that measured it:
    `measured` says the names of those that have a value at a commit.
    """
    names = {commit: measured(commit) for commit in commits}
    for place, head in enumerate(commits[1:], start=1):
        missing = set(names[head])
        bases: dict[str, set[str]] = {}
        for base in reversed(commits[:place]):
            if missing and (shared := missing & names[base]):
                missing -= shared
                bases[base] = shared
        yield Task(head, commits[place - 1], len(missing), bases)


def step(history: History, task: Task) -> Step:
    """Compare what a task says."""
    made = Step(task.head, task.previous, task.new, [], [])
    for base, names in task.shared.items():
        try:
            made.comparisons.extend(between(history, base, task.head, names))
        except CannotCompareError as error:
            made.notes.append(str(error))
    return made


def between(history: History, base: str, head: str, names: set[str]) -> Iterator[Comparison]:
    """The comparison of two commits, of those configurations alone; none if they share no environment of asv's."""
    if set(history.environments(base)) & set(history.environments(head)):
        yield compare(sides(history, (base, head), [base, head]), beside(history.results), names=names)


def measured(history: History, commit: str) -> set[str]:
    """The names of the configurations that have a value."""
    names = history.benchmarks("time") + history.benchmarks("track")
    return {
        point.name(name)
        for results in history.environments(commit).values()
        for name in names
        for point in history.points(results, name)
        if point.value is not None
    }
