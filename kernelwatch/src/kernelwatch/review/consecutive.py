"""The review of every measured commit of a machine against its nearest ancestors that measured the same."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import repeat

from kernelwatch.review.acknowledged import beside
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.rows import kernel
from kernelwatch.store import rows
from kernelwatch.store.results import History

#: By asv's environment, the configurations that have a value or failed -> the value; None where it failed.
Measured = Mapping[str, Mapping[str, float | None]]


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
    #: Why some could not be compared, once that was tried.
    notes: list[str] = field(default_factory=list)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The reviews with each of these ancestors, of the shared configurations alone."""
        made = []
        for (base, environment), names in self.shared.items():
            try:
                made.append(between(self.history, base, self.head, environment, names))
            except CannotCompareError as error:
                self.notes.append(str(error))
        return made


def consecutive(history: History) -> Iterator[Step]:
    """Yield the steps along the published branches of a machine's history, oldest first."""
    line = set(history.graph.line)
    return (step for step in steps(history, partial(measured, history)) if step.head in line)


def steps(history: History, measured: Callable[[str], Measured]) -> Iterator[Step]:
    """Yield the steps to all commits that have measured ancestors, oldest first; `measured` says what each measured."""
    known = cache(measured)
    return (found for head in history.graph.commits if (found := step(history, head, known)) is not None)


def step(history: History, head: str, measured: Callable[[str], Measured]) -> Step | None:
    """Return the step to a commit; None if it has no measured ancestor. `measured` says what each measured.

    A run may measure a part of the suite. So each configuration is compared with the nearest ancestor that measured
    it, and if that failed there, with the nearest that has a value, too.
    """
    previous = next(history.graph.ancestors(head), None)
    if previous is None:
        return None
    bases: dict[tuple[str, str], set[str]] = defaultdict(set)
    new = 0
    for environment, own in measured(head).items():
        unseen, valued = set(own), _valued(own)
        for base in history.graph.ancestors(head):
            there = measured(base).get(environment, {})
            values = _valued(there)
            if shared := (unseen & there.keys()) | (valued & values):
                bases[base, environment] |= shared
            unseen, valued = unseen - there.keys(), valued - values
            if not unseen | valued:
                break
        new += len(unseen)
    return Step(history, head, previous, new, dict(bases))


def _valued(measured: Mapping[str, float | None]) -> set[str]:
    return {name for name, value in measured.items() if value is not None}


def between(history: History, base: str, head: str, environment: str, names: set[str]) -> Comparison:
    """Compare two commits in one of asv's environments, those configurations alone."""
    found = sides(history, (base, head), [base, head])
    (both,) = (each for each in found if each.environment == environment)
    return compare(both, beside(history.results), names=names)


def measured(history: History, commit: str) -> dict[str, dict[str, float | None]]:
    """Return what a commit measured."""
    return {
        environment: {
            name: value
            for benchmark, row in results.results.items()
            if not history.why_not_run(results, benchmark)
            for name, value in zip(
                _names(benchmark, tuple(map(tuple, row.params))), row.result or repeat(None), strict=False
            )
            if value is None or math.isfinite(value)
        }
        for environment, results in history.environments(commit).items()
    }


@cache
def _names(benchmark: str, axes: tuple[tuple[str, ...], ...]) -> list[str]:
    """The configurations of a benchmark as `Point.name` has them, in the order of a row."""
    unquoted = [[text.strip("'") for text in axis] for axis in axes]
    return [f"{benchmark}({text})" if axes else benchmark for text in rows.texts(unquoted)]


def failing(history: History, commit: str) -> list[str]:
    """Return the kernels that fail at a commit: all that there is to say where nothing is compared."""
    names = history.benchmarks("time") + history.benchmarks("track")
    every = (
        kernel(name, point.params)
        for results in history.environments(commit).values()
        for name in names
        for point in history.points(results, name)
        if point.failed
    )
    return list(dict.fromkeys(every))
