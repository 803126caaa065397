"""The regressions in a machine's history that no later commit fixed or accepted: single steps, and drifts.

A drift is a series of small steps.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelwatch.review.acknowledged import select_entries
from kernelwatch.review.commit_review import Review
from kernelwatch.review.pairing import BROKEN, REPAIRED
from kernelwatch.review.rows import Failure, Row, UnpairedConfiguration, group_failures
from kernelwatch.review.verdict import CHANGED_TIMES, REUSED, Verdict
from kernelwatch.store.default_thresholds import THRESHOLD_BETWEEN_GPUS
from kernelwatch.suite.benchmark_names import TIMED

#: Minimum number of commits of a drift. Two commits are neighbours, which the review compares anyway.
MIN_DRIFT_COMMITS = 3

#: An environment of asv, and the name of a configuration in it.
Key = tuple[str, str]

#: Function that returns a review, from base, head, asv's environment and the names of configurations.
ReviewEnds = Callable[[str, str, str, Set[str]], Review]


class Drift(NamedTuple):
    """The first and the last commit of a drift, and the row of a time that is slower in the last."""

    base: str
    head: str
    row: Row


@dataclass(frozen=True)
class Regression:
    """A change to the worse between two commits of a machine.

    `head` is the first measured commit with the change, and `base` the measured ancestor before. For a drift, `base`
    and `head` are its ends. `rows` have times first, then the largest changes. `broken` are the failures that began at
    `head`.
    """

    machine: str
    base: str
    head: str
    rows: tuple[Row, ...]
    broken: tuple[Failure, ...] = ()
    is_drift: bool = False


@dataclass
class _StandingRegression:
    """A configuration that became worse, and the product of the ratios of its judged changes since `base`."""

    base: str
    head: str
    row: Row
    relative_time: float

    def apply_step(self, later: Row) -> bool:
        """Add the row of a later commit; return whether the regression is fixed.

        A time is fixed if the product of the ratios of all its changes since base is within the threshold. Another
        number is fixed if it is at most its value at base.
        """
        if later.kind != TIMED:
            return later.head <= self.row.base
        if later.judgement.verdict in CHANGED_TIMES:
            self.relative_time *= later.judgement.ratio
        return self.relative_time <= 1 + self.row.judgement.threshold


class _UnchangedStretch(NamedTuple):
    """Consecutive commits without a change of a time, on comparable GPUs: first, last, number of commits, last time."""

    first: str
    last: str
    commits: int
    seconds: float


@dataclass
class RegressionTracker:
    """The regressions, failures and unchanged times of a machine's history up to a commit.

    Commits are added oldest first. `heads` are the added commits. `failing` has the commits before and at which a
    configuration began to fail, and the configuration.
    """

    heads: list[str] = field(default_factory=list)
    standing: dict[Key, list[_StandingRegression]] = field(default_factory=dict)
    failing: dict[Key, tuple[str, str, UnpairedConfiguration]] = field(default_factory=dict)
    stretches: dict[Key, _UnchangedStretch] = field(default_factory=dict)

    def add_step(self, head: str, reviews: Iterable[Review]) -> None:
        """Add a commit, reviewed against its ancestors: add new regressions, drop those that it fixes or accepts."""
        self.heads.append(head)
        for review in reviews:
            base, environment = review.base.commit, review.environment
            for row in review.rows:
                key = environment, row.name
                self._extend_stretch(key, base, head, row)
                earlier = self.standing.pop(key, [])
                # A commit may accept a regression of an earlier commit.
                accepts = earlier and select_entries(row, review.changes.acknowledgements)
                standing = [regression for regression in earlier if not (accepts or regression.apply_step(row))]
                if row.judgement.verdict is Verdict.SLOWER:
                    standing.append(_StandingRegression(base, head, row, row.judgement.ratio))
                if standing:
                    self.standing[key] = standing
            for configuration in review.unpaired[BROKEN]:
                self.failing[environment, configuration.name] = base, head, configuration
            for configuration in review.unpaired[REPAIRED]:
                self.failing.pop((environment, configuration.name), None)

    def _extend_stretch(self, key: Key, base: str, head: str, row: Row) -> None:
        """Extend a time's stretch by a step; end it if the time changed or its threshold is that of different GPUs."""
        # A reused time adds no information.
        if row.kind != TIMED or min(row.base, row.head) <= 0 or REUSED in row.judgement.reasons:
            return
        stretch = self.stretches.pop(key, None)
        if row.judgement.verdict in CHANGED_TIMES or row.judgement.threshold >= THRESHOLD_BETWEEN_GPUS:
            return
        if stretch is None or stretch.seconds != row.base:
            stretch = _UnchangedStretch(base, base, 1, row.base)
        self.stretches[key] = _UnchangedStretch(stretch.first, head, stretch.commits + 1, row.head)

    def iter_drifts(self, review_ends: ReviewEnds) -> Iterator[Drift]:
        """Yield the drifts: times that are slower at the end of their stretch than at its beginning.

        A stretch has at least MIN_DRIFT_COMMITS commits.
        """
        ends: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for (environment, name), stretch in self.stretches.items():
            if stretch.commits >= MIN_DRIFT_COMMITS:
                ends[stretch.first, stretch.last, environment].add(name)
        for (base, head, environment), names in ends.items():
            for row in review_ends(base, head, environment, names).rows:
                if row.judgement.verdict is Verdict.SLOWER:
                    yield Drift(base, head, row)

    def list_regressions(self, machine: str, drifts: Iterable[Drift]) -> list[Regression]:
        """Return the standing regressions and failures, newest first, and then the drifts, newest first."""
        rows: dict[tuple[bool, str, str], list[Row]] = defaultdict(list)
        broken: dict[tuple[bool, str, str], list[UnpairedConfiguration]] = defaultdict(list)
        for regression in itertools.chain.from_iterable(self.standing.values()):
            rows[False, regression.base, regression.head].append(regression.row)
        for base, head, configuration in self.failing.values():
            broken[False, base, head].append(configuration)
        for base, head, row in drifts:
            rows[True, base, head].append(row)
        newest_first = sorted({*rows, *broken}, key=lambda key: (key[0], -self.heads.index(key[2]), key))
        return [
            Regression(
                machine,
                base,
                head,
                tuple(sorted(rows[is_drift, base, head], key=lambda row: (row.kind != TIMED, -row.size, row.name))),
                tuple(group_failures(Verdict.BROKEN, broken[is_drift, base, head])),
                is_drift,
            )
            for is_drift, base, head in newest_first
        ]
