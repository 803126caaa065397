"""The review of every measured commit of a machine against its nearest ancestors that measured the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kernelwatch.review.acknowledged import beside
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.store.graph import Graph
from kernelwatch.store.results import History

#: By asv's environment, the configurations that have a value or failed -> whether they failed.
Measured = Mapping[str, Mapping[str, bool]]


@dataclass(frozen=True)
class Step:
    """A measured commit `head`, and what the review says of it.

    `previous` is its nearest measured ancestor, whatever that measured; so many configurations are `new`, of which no
    ancestor has any. `comparisons` are with each ancestor that was the nearest to measure some of the others, of those
    alone; `notes` say why some could not be compared.
    """

    head: str
    previous: str
    new: int
    comparisons: list[Comparison]
    notes: list[str]


@dataclass(frozen=True)
class Task:
    """What is to be compared for a `Step`: `shared` has the configurations by ancestor and asv's environment."""

    head: str
    previous: str
    new: int
    shared: dict[tuple[str, str], set[str]]


def consecutive(history: History) -> Iterator[Step]:
    """Yield the steps along the published branches of a machine's history, oldest first."""
    line = set(history.graph.line)
    every = tasks(history.graph, lambda commit: measured(history, commit))
    return (step(history, task) for task in every if task.head in line)


def tasks(graph: Graph, measured: Callable[[str], Measured]) -> Iterator[Task]:
    """Yield what is to be compared, oldest first, of all commits that have measured ancestors.

    A run may measure a part of the suite. So each configuration is compared with the nearest ancestor that measured
    it, and if that failed there, with the nearest that has a value, too.
    """
    names = {commit: measured(commit) for commit in graph.commits}
    for head in graph.commits:
        previous = next(graph.ancestors(head), None)
        if previous is None:
            continue
        bases: dict[tuple[str, str], set[str]] = defaultdict(set)
        new = 0
        for environment, own in names[head].items():
            unseen, valued = set(own), {name for name, failed in own.items() if not failed}
            for base in graph.ancestors(head):
                there = names[base].get(environment, {})
                values = {name for name, failed in there.items() if not failed}
                if shared := (unseen & there.keys()) | (valued & values):
                    bases[base, environment] |= shared
                unseen, valued = unseen - there.keys(), valued - values
                if not unseen | valued:
                    break
            new += len(unseen)
        yield Task(head, previous, new, dict(bases))


def step(history: History, task: Task) -> Step:
    """Compare what a task says."""
    made = Step(task.head, task.previous, task.new, [], [])
    for (base, environment), names in task.shared.items():
        try:
            made.comparisons.append(between(history, base, task.head, environment, names))
        except CannotCompareError as error:
            made.notes.append(str(error))
    return made


def between(history: History, base: str, head: str, environment: str, names: set[str]) -> Comparison:
    """Compare two commits in one of asv's environments, those configurations alone."""
    found = sides(history, (base, head), [base, head])
    (both,) = (each for each in found if each.environment == environment)
    return compare(both, beside(history.results), names=names)


def measured(history: History, commit: str) -> dict[str, dict[str, bool]]:
    """What a commit measured."""
    names = history.benchmarks("time") + history.benchmarks("track")
    return {
        environment: {
            point.name(name): point.failed
            for name in names
            for point in history.points(results, name)
            if point.value is not None or point.failed
        }
        for environment, results in history.environments(commit).items()
    }
