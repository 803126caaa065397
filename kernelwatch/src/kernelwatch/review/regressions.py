"""The regressions of a machine's history that no later commit mended: in one step, or in many small ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from kernelwatch.review.acknowledged import select_entries
from kernelwatch.review.compare import Review
from kernelwatch.review.pairing import BROKEN, REPAIRED
from kernelwatch.review.rows import Failure, Row, UnpairedConfiguration, group_failures
from kernelwatch.review.verdict import CHANGED_TIMES, NOT_AGAIN, Verdict
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.suite.benchmark_names import TIMED

#: Commits that a drift has at least: two are neighbours, which the review compares by itself.
MIN_DRIFT_COMMITS = 3

#: A configuration of an environment.
Key = tuple[str, str]

#: A function that reviews some configurations of two commits in an environment.
ReviewEnds = Callable[[str, str, str, Set[str]], Review]


@dataclass(frozen=True)
class Regression:
    """A change to the worse between two commits of a machine.

    These were measured one after the other; or it is a drift, in steps that are too small for the review. The rows have
    the largest change first, times before numbers; `broken` fails since.
    """

    machine: str
    base: str
    head: str
    rows: tuple[Row, ...]
    broken: tuple[Failure, ...] = ()
    is_drift: bool = False


@dataclass
class _StandingRegression:
    """A configuration that became worse, and how its time has changed since, in times of base."""

    base: str
    head: str
    row: Row
    relative_time: float

    def is_mended_by(self, later: Row) -> bool:
        """Return whether a later step took it back: exact numbers by value, times by the ratios of the reviews."""
        if later.kind != TIMED:
            return later.head <= self.row.base
        if later.judgement.verdict in CHANGED_TIMES:
            self.relative_time *= later.judgement.ratio
        return self.relative_time <= 1 + self.row.judgement.threshold


def fold_reviews(
    machine: str,
    steps: Iterable[tuple[str, Sequence[Review]]],
    review_ends: ReviewEnds,
) -> list[Regression]:
    """Return the regressions and drifts that stand after the steps of a machine's history, newest first.

    A step is a commit, and its reviews with ancestors. Steps come oldest first. `review_ends` reviews the first and the
    last commit of a stretch in an environment, some configurations alone.
    """
    standing: dict[Key, list[_StandingRegression]] = defaultdict(list)
    failing: dict[Key, tuple[str, str, UnpairedConfiguration]] = {}
    stretches: dict[Key, tuple[list[str], float]] = {}
    heads: list[str] = []
    for head, reviews in steps:
        heads.append(head)
        for review in reviews:
            base, environment = review.base.commit, review.environment
            for row in review.rows:
                key = environment, row.name
                _extend_stretch(stretches, key, (base, head), row)
                # An entry may come later than the regression.
                accepts = standing[key] and select_entries(row, review.changes.acknowledgements)
                standing[key] = [
                    regression for regression in standing[key] if not (accepts or regression.is_mended_by(row))
                ]
                if row.judgement.verdict is Verdict.SLOWER:
                    standing[key].append(_StandingRegression(base, head, row, row.judgement.ratio))
            for configuration in review.unpaired[BROKEN]:
                failing[environment, configuration.name] = base, head, configuration
            for configuration in review.unpaired[REPAIRED]:
                failing.pop((environment, configuration.name), None)
    rows: dict[tuple[bool, str, str], list[Row]] = defaultdict(list)
    broken: dict[tuple[bool, str, str], list[UnpairedConfiguration]] = defaultdict(list)
    for regression in (regression for regressions in standing.values() for regression in regressions):
        rows[False, regression.base, regression.head].append(regression.row)
    for base, head, configuration in failing.values():
        broken[False, base, head].append(configuration)
    for base, head, row in _iter_drifts(stretches, review_ends):
        rows[True, base, head].append(row)
    newest_first = sorted({*rows, *broken}, key=lambda key: (key[0], -heads.index(key[2]), key))
    return [
        Regression(
            machine, base, head, tuple(sorted(rows[key], key=_sort_row)),
            tuple(group_failures(Verdict.BROKEN, broken[key])), is_drift,
        )
        for key in newest_first for is_drift, base, head in [key]
    ]  # fmt: skip


def _extend_stretch(stretches: dict[Key, tuple[list[str], float]], key: Key, ends: tuple[str, str], row: Row) -> None:
    """Add neighbours to the commits, and the last time, since the last change or the last GPU without controls."""
    # A time that was taken over says nothing new.
    if row.kind != TIMED or min(row.base, row.head) <= 0 or NOT_AGAIN in row.judgement.reasons:
        return
    if row.judgement.verdict in CHANGED_TIMES or row.judgement.threshold >= ANOTHER_GPU:
        stretches.pop(key, None)
        return
    commits, seconds = stretches.get(key, ([], 0.0))
    stretches[key] = commits if seconds == row.base else [ends[0]], row.head
    stretches[key][0].append(ends[1])


def _iter_drifts(
    stretches: Mapping[Key, tuple[list[str], float]], review_ends: ReviewEnds
) -> Iterator[tuple[str, str, Row]]:
    """Yield the times that the review of a stretch's first and last commit calls slower."""
    ends: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (environment, name), (commits, _) in stretches.items():
        if len(commits) >= MIN_DRIFT_COMMITS:
            ends[commits[0], commits[-1], environment].add(name)
    for (base, head, environment), names in ends.items():
        for row in review_ends(base, head, environment, names).rows:
            if row.judgement.verdict is Verdict.SLOWER:
                yield base, head, row


def _sort_row(row: Row) -> tuple[bool, float, str]:
    return row.kind != TIMED, -row.size, row.name
