"""The review of every measured commit of a machine against its nearest ancestors that measured the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from kernelwatch.review.acknowledged import beside
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.store.results import History

#: By asv's environment, the configurations that have a value or failed -> whether they failed.
Measured = Mapping[str, Mapping[str, bool]]


@dataclass(frozen=True)
class Step:
    """A measured commit `head` of a history, and what it is compared with.

    `previous` is its nearest measured ancestor, whatever that measured; so many configurations are `new`, of which no
    ancestor has any. `shared` has the others by ancestor and asv's environment, the nearest that measured them.
    """

    history: History
    head: str
    previous: str
    new: int
    shared: Mapping[tuple[str, str], set[str]]

    @cached_property
    def _reviewed(self) -> tuple[list[Comparison], list[str]]:
        made, notes = list[Comparison](), list[str]()
        for (base, environment), names in self.shared.items():
            try:
                made.append(between(self.history, base, self.head, environment, names))
            except CannotCompareError as error:
                notes.append(str(error))
        return made, notes

    @property
    def comparisons(self) -> list[Comparison]:
        """The reviews with each of these ancestors, of the shared configurations alone."""
        return self._reviewed[0]

    @property
    def notes(self) -> list[str]:
        """Why some could not be compared."""
        return self._reviewed[1]


def consecutive(history: History) -> Iterator[Step]:
    """Yield the steps along the published branches of a machine's history, oldest first."""
    line = set(history.graph.line)
    return (step for step in steps(history, partial(measured, history)) if step.head in line)


def steps(history: History, measured: Callable[[str], Measured]) -> Iterator[Step]:
    """Yield the steps to all commits that have measured ancestors, oldest first; `measured` says what each measured.

    A run may measure a part of the suite. So each configuration is compared with the nearest ancestor that measured
    it, and if that failed there, with the nearest that has a value, too.
    """
    graph = history.graph
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
        yield Step(history, head, previous, new, dict(bases))


def between(history: History, base: str, head: str, environment: str, names: set[str]) -> Comparison:
    """Compare two commits in one of asv's environments, those configurations alone."""
    found = sides(history, (base, head), [base, head])
    (both,) = (each for each in found if each.environment == environment)
    return compare(both, beside(history.results), names=names)


def measured(history: History, commit: str) -> dict[str, dict[str, bool]]:
    """Return what a commit measured."""
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
