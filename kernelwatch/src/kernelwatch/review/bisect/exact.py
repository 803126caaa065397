"""Counted and compiled numbers of commits: exact, without a GPU, and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwatch import suite
from kernelwatch.counting.metrics import METRICS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.judging import BUILT, SKIPPED, Step, side
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import exact

#: The architecture whose machine code is compared where the number is of none.
ARCH = "sm_90"


class Numbers:
    """The numbers of a repository's commits, each computed once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[tuple[str, str], float | str] = {}

    def read(self, commit: Commit, wanted: Sequence[Configuration]) -> list[float | str]:
        """Return the number of each configuration at a commit, or why there is none."""
        lacking = [each for each in wanted if (commit.package, each.name) not in self._known]
        if lacking:
            asked = [(each.benchmark, dict(each.params)) for each in lacking]
            try:
                found = probe.ask(commit, "values", asked, self._root)
            except probe.PackageError as error:
                found = [str(error)] * len(lacking)
            names = ((commit.package, each.name) for each in lacking)
            self._known.update(zip(names, found, strict=True))
        return [self._known[commit.package, each.name] for each in wanted]

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> Iterator[Row]:
        """Yield the review's row of each configuration that both commits have a number of."""
        for each, before, after in zip(wanted, self.read(base, wanted), self.read(head, wanted), strict=True):
            if not isinstance(before, str) and not isinstance(after, str):
                known = METRICS.get(each.metric)
                unit = known.unit if known else suite.RESOURCES[each.metric][0]
                yield Row(each.name, each.kind.value, unit, before, after, exact(before, after))


class Exact:
    """Judges commits by one counted or compiled number, which good and bad have."""

    def __init__(self, configuration: Configuration, numbers: Numbers, good: Commit, bad: Commit) -> None:
        self._configuration, self._numbers, self._good, self._bad = configuration, numbers, good, bad
        self.arch = configuration.params.get("arch", ARCH)

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row; None where one of them has no number."""
        return next(self._numbers.rows(base, head, [self._configuration]), None)

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        (value,) = self._numbers.read(commit, [self._configuration])
        from_good, to_bad = self.row(self._good, commit), self.row(commit, self._bad)
        if isinstance(value, str) or from_good is None or to_bad is None:
            return Step(commit.hash, "skip", SKIPPED, reason=str(value))
        return Step(commit.hash, side(from_good, to_bad), BUILT, value)
