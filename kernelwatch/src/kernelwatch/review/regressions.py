"""The regressions of a machine's history that no later commit mended: in one step, or in many small ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from kernelwatch.review.acknowledged import select_entries
from kernelwatch.review.compare import Review
from kernelwatch.review.pairing import BROKEN, REPAIRED
from kernelwatch.review.rows import Failure, Lone, Row, failures
from kernelwatch.review.verdict import NOT_AGAIN, TOLD, Verdict
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.points import TIMED

#: Commits that a drift has at least: two are neighbours, which the review compares by itself.
FEWEST = 3

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
class _Worse:
    """A configuration that became worse, and how its time has changed since, in times of base."""

    base: str
    head: str
    row: Row
    now: float

    def mended_by(self, later: Row) -> bool:
        """Whether a later step took it back. Numbers are exact; times are followed by what the review told of them."""
        if later.kind != TIMED:
            return later.head <= self.row.base
        if later.judgement.verdict in TOLD:
            self.now *= later.judgement.ratio
        return self.now <= 1 + self.row.judgement.threshold


def fold_reviews(
    machine: str,
    steps: Iterable[tuple[str, Sequence[Review]]],
    review_ends: ReviewEnds,
) -> list[Regression]:
    """Return the regressions and drifts that stand after the steps of a machine's history, newest first.

    A step is a commit, and its reviews with ancestors. Steps come oldest first. `review_ends` reviews the first and the
    last commit of a stretch in an environment, some configurations alone.
    """
    worse: dict[Key, list[_Worse]] = defaultdict(list)
    failing: dict[Key, tuple[str, str, Lone]] = {}
    stretches: dict[Key, tuple[list[str], float]] = {}
    heads: list[str] = []
    for head, reviews in steps:
        heads.append(head)
        for review in reviews:
            base, environment = review.base.commit, review.environment
            for row in review.rows:
                key = environment, row.name
                _stretch(stretches, key, (base, head), row)
                # An entry may come later than the regression.
                accepts = worse[key] and select_entries(row, review.changes.acknowledgements)
                worse[key] = [each for each in worse[key] if not (accepts or each.mended_by(row))]
                if row.judgement.verdict is Verdict.SLOWER:
                    worse[key].append(_Worse(base, head, row, row.judgement.ratio))
            for lone in review.lone[BROKEN]:
                failing[environment, lone.name] = base, head, lone
            for lone in review.lone[REPAIRED]:
                failing.pop((environment, lone.name), None)
    rows: dict[tuple[bool, str, str], list[Row]] = defaultdict(list)
    broken: dict[tuple[bool, str, str], list[Lone]] = defaultdict(list)
    for each in (each for several in worse.values() for each in several):
        rows[False, each.base, each.head].append(each.row)
    for base, head, lone in failing.values():
        broken[False, base, head].append(lone)
    for base, head, row in _drifts(stretches, review_ends):
        rows[True, base, head].append(row)
    newest_first = sorted({*rows, *broken}, key=lambda key: (key[0], -heads.index(key[2]), key))
    return [
        Regression(
            machine, base, head, tuple(sorted(rows[key], key=_worst)),
            tuple(failures(Verdict.BROKEN, broken[key])), is_drift,
        )
        for key in newest_first for is_drift, base, head in [key]
    ]  # fmt: skip


def _stretch(stretches: dict[Key, tuple[list[str], float]], key: Key, ends: tuple[str, str], row: Row) -> None:
    """Add neighbours to the commits, and the last time, since the review told a change or another GPU measured."""
    # A time that was taken over says nothing new.
    if row.kind != TIMED or min(row.base, row.head) <= 0 or NOT_AGAIN in row.judgement.reasons:
        return
    if row.judgement.verdict in TOLD or row.judgement.threshold >= ANOTHER_GPU:
        stretches.pop(key, None)
        return
    commits, seconds = stretches.get(key, ([], 0.0))
    stretches[key] = commits if seconds == row.base else [ends[0]], row.head
    stretches[key][0].append(ends[1])


def _drifts(
    stretches: Mapping[Key, tuple[list[str], float]], review_ends: ReviewEnds
) -> Iterator[tuple[str, str, Row]]:
    """Yield the times that the review of a stretch's first and last commit calls slower."""
    ends: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (environment, name), (commits, _) in stretches.items():
        if len(commits) >= FEWEST:
            ends[commits[0], commits[-1], environment].add(name)
    for (base, head, environment), names in ends.items():
        for row in review_ends(base, head, environment, names).rows:
            if row.judgement.verdict is Verdict.SLOWER:
                yield base, head, row


def _worst(row: Row) -> tuple[bool, float, str]:
    return row.kind != TIMED, -row.size, row.name
