"""Which regressions of a machine's history stand, mended by no later commit: in one step, or in many small ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelwatch.review.commits import CannotCompareError
from kernelwatch.review.comparison import BROKEN, REPAIRED
from kernelwatch.review.consecutive import between, consecutive
from kernelwatch.review.rows import Failure, Lone, Row, failures
from kernelwatch.review.verdict import NOT_AGAIN, TOLD, Verdict
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED, History

#: Commits that a drift has at least: two are neighbours, which the review compares by itself.
FEWEST = 3

#: A configuration of an environment.
Key = tuple[str, str]


@dataclass(frozen=True)
class Regression:
    """What became worse between two commits of a machine.

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


def standing(history: History) -> list[Regression]:
    """Return the regressions of a machine that stand along the published branches, newest first.

    Raises CannotCompareError where a file that the review needs is of another form.
    """
    worse: dict[Key, list[_Worse]] = defaultdict(list)
    failing: dict[Key, tuple[str, str, Lone]] = {}
    stretches: dict[Key, tuple[list[str], float]] = {}
    heads: list[str] = []
    for step in consecutive(history):
        heads.append(step.head)
        comparisons = step.comparisons
        if step.notes:
            raise CannotCompareError(step.notes[0])
        for one in comparisons:
            for row in one.rows:
                key = one.environment, row.name
                _stretch(stretches, key, (one.base.commit, step.head), row)
                accepts = worse[key] and one.acknowledged.entries(row)  # an entry that came later
                worse[key] = [each for each in worse[key] if not (accepts or each.mended_by(row))]
                if row.judgement.verdict is Verdict.SLOWER:
                    worse[key].append(_Worse(one.base.commit, step.head, row, row.judgement.ratio))
            for lone in one.lone[BROKEN]:
                failing[one.environment, lone.name] = one.base.commit, step.head, lone
            for lone in one.lone[REPAIRED]:
                failing.pop((one.environment, lone.name), None)
    found: dict[tuple[str, str, bool], tuple[list[Row], list[Lone]]] = defaultdict(lambda: ([], []))
    for each in (each for every in worse.values() for each in every):
        found[each.base, each.head, False][0].append(each.row)
    for base, head, lone in failing.values():
        found[base, head, False][1].append(lone)
    for base, head, row in _drifts(stretches, history):
        found[base, head, True][0].append(row)
    newest_first = sorted(found.items(), key=lambda item: (-heads.index(item[0][1]), item[0]))
    return [
        Regression(
            history.machine, base, head, tuple(sorted(rows, key=_worst)),
            tuple(failures(Verdict.BROKEN, lones)), is_drift,
        )
        for (base, head, is_drift), (rows, lones) in newest_first
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


def _drifts(stretches: Mapping[Key, tuple[list[str], float]], history: History) -> Iterator[tuple[str, str, Row]]:
    """Yield the times that the review of a stretch's first and last commit calls slower."""
    ends: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for (environment, name), (commits, _) in stretches.items():
        if len(commits) >= FEWEST:
            ends[commits[0], commits[-1], environment].add(name)
    for (base, head, environment), names in ends.items():
        for row in between(history, base, head, environment, names).rows:
            if row.judgement.verdict is Verdict.SLOWER:
                yield base, head, row


def _worst(row: Row) -> tuple[bool, float, str]:
    return row.kind != TIMED, -row.size, row.name
