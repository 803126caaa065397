"""What is said of one commit between a good and a bad one, from the review's verdicts on it: by numbers, by a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwatch import suite
from kernelwatch.counting.metrics import METRICS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.bisect.times import Times
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, exact

#: Where the answer on a commit comes from, cheapest first.
STORED, BUILT, MEASURED, SKIPPED = "stored", "built", "measured", "skipped"

#: What a judge says of a commit that it cannot tell, as `git bisect` calls it.
SKIP = "skip"


@dataclass(frozen=True)
class Step:
    """One commit that was looked at: its verdict as `git bisect` calls it, and where that comes from.

    `value` is its number, where one was read; `reason` says why it is skipped, or what stands for it.
    """

    commit: str
    verdict: str
    source: str
    value: float | None = None
    reason: str = ""


def differs(row: Row) -> bool:
    """Return whether the review tells the two apart. A regression that is acknowledged is one all the same."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def side(from_good: Row, to_bad: Row) -> str:
    """Return the side that a commit is on, from the review of good and it, and of it and bad.

    One that differs from both is on the side that it is nearer to: so what is found is the step across the middle of
    the change. "skip": the review is in doubt, or calls it the same as both.
    """
    if Verdict.UNDECIDED in (from_good.judgement.verdict, to_bad.judgement.verdict):
        return SKIP
    if differs(from_good) and differs(to_bad):
        return "bad" if abs(from_good.head - from_good.base) > abs(to_bad.head - to_bad.base) else "good"
    return "bad" if differs(from_good) else "good" if differs(to_bad) else SKIP


def _decided(commit: Commit, from_good: Row | None, to_bad: Row | None, source: str, missing: str) -> Step:
    """Return what both reviews say; `missing` says why there is none."""
    if from_good is None or to_bad is None:
        return Step(commit.hash, SKIP, SKIPPED, reason=missing)
    if (verdict := side(from_good, to_bad)) != SKIP:
        return Step(commit.hash, verdict, source, from_good.head)
    doubts = "; ".join(filter(None, (row.judgement.reason for row in (from_good, to_bad))))
    return Step(commit.hash, verdict, SKIPPED, from_good.head, doubts or "the same as both")


class Numbers:
    """The counted and compiled numbers of a repository's commits, exact on any machine, each computed once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[tuple[str, str], float | str] = {}

    def read(self, commit: Commit, wanted: Sequence[Configuration]) -> list[float | str]:
        """Return the number of each configuration at a commit, or why there is none."""
        lacking = [each for each in wanted if (commit.package, each.name) not in self._known]
        if lacking:
            try:
                asked = [(each.benchmark, dict(each.params)) for each in lacking]
                found = probe.ask(commit, "values", asked, self._root)
            except probe.PackageError as error:
                found = [str(error)] * len(lacking)
            names = ((commit.package, each.name) for each in lacking)
            self._known.update(zip(names, found, strict=True))
        return [self._known[commit.package, each.name] for each in wanted]

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> list[Row]:
        """Return the review's row of each configuration that both commits have a number of."""
        found = []
        for each, before, after in zip(wanted, self.read(base, wanted), self.read(head, wanted), strict=True):
            if not isinstance(before, str) and not isinstance(after, str):
                known = METRICS.get(each.metric)
                unit = known.unit if known else suite.RESOURCES[each.metric][0]
                found.append(Row(each.name, each.kind.value, unit, before, after, exact(before, after)))
        return found


class Exact:
    """Judges commits by one counted or compiled number, which good and bad, the first and the last of them, have."""

    def __init__(self, configuration: Configuration, change: Row, numbers: Numbers, commits: Sequence[Commit]) -> None:
        self.configuration, self.change, self._numbers, self._commits = configuration, change, numbers, commits

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row; None where one of them has no number."""
        return next(iter(self._numbers.rows(base, head, [self.configuration])), None)

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        (value,) = self._numbers.read(commit, [self.configuration])
        both = self.row(self._commits[0], commit), self.row(commit, self._commits[-1])
        return _decided(commit, *both, BUILT, str(value))


class Timed:
    """Judges commits by one time: from the good one to the bad one, the first and the last of them."""

    def __init__(
        self, configuration: Configuration, change: Row, times: Times, commits: Sequence[Commit], root: Path
    ) -> None:
        self.configuration, self.change, self._times, self._commits = configuration, change, times, commits
        self._root, self._good, self._bad = root, commits[0], commits[-1]
        #: Package -> what its launch gives the GPU.
        self._launched: dict[str, str] = {}

    def launched(self, commit: Commit) -> str:
        """Return the fingerprint of what a commit's launch gives the GPU: equal ones take the same time.

        Raises
        ------
        PackageError
            The commit does not build, or lacks the kernel.
        """
        if commit.package not in self._launched:
            asked = self.configuration.benchmark, dict(self.configuration.params), self._times.arch
            self._launched[commit.package] = probe.ask(commit, "launched", asked, self._root)
        return self._launched[commit.package]

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row, measured if it is not known and a GPU is here."""
        if self._known(base, head) is None and self._times.can_measure:
            self._times.measure([base, head], [self.configuration])
        return self._known(base, head)

    def _known(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row of the times that stand for both commits; None where one has none."""
        one, other = self._with_time(base), self._with_time(head)
        found = self._times.rows(one, other, [self.configuration]) if one and other else []
        return next(iter(found), None)

    def _with_time(self, commit: Commit) -> Commit | None:
        """Return a stored commit that launches the same: good or bad if they do, else itself, else any between."""
        wanted = self.launched(commit)
        for each in (self._good, self._bad, commit, *self._commits):
            with contextlib.suppress(probe.PackageError):
                if self._times.stored(each) and self.launched(each) == wanted:
                    return each
        return None

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        try:
            found = self._step(commit, STORED)
        except probe.PackageError as error:
            return Step(commit.hash, SKIP, SKIPPED, reason=str(error))
        if found.verdict == SKIP and self._times.can_measure:
            self._times.measure([self._good, commit, self._bad], [self.configuration])
            found = self._step(commit, MEASURED)
        return found

    def _step(self, commit: Commit, source: str) -> Step:
        why = "it was not timed" if self._times.can_measure else "not timed yet, and there is no such GPU here"
        return _decided(commit, self._known(self._good, commit), self._known(commit, self._bad), source, why)
