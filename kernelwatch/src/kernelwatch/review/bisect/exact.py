"""Counted and compiled numbers of commits: exact, without a GPU, and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwatch.asv import suite
from kernelwatch.counting.transactions import METRICS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.judging import BUILT, SKIPPED, STORED, Step, side
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.bisect.stored import Stored
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import exact

#: The architecture whose machine code is compared where the number is of none.
ARCH = "sm_90"


class Numbers:
    """The numbers of commits, each read or computed once.

    Parameters
    ----------
    root : Path
        The repository.
    stored : Stored
        Its results.
    """

    def __init__(self, root: Path, stored: Stored) -> None:
        self._root, self._stored = root, stored
        self._known: dict[tuple[str, str], tuple[float | str, str]] = {}

    def read(self, commit: Commit, wanted: Sequence[Configuration]) -> list[tuple[float | str, str]]:
        """Return the number of each configuration at a commit, or why there is none, and where it comes from."""
        lacking = []
        for each in wanted:
            if (commit.package, each.name) in self._known:
                continue
            found = self._stored.exact(each.benchmark, each.params, commit.package)
            if found is None:
                lacking.append(each)
            else:
                self._known[commit.package, each.name] = found, STORED
        for each, value in zip(lacking, self._computed(commit, lacking), strict=True):
            self._known[commit.package, each.name] = value, BUILT
        return [self._known[commit.package, each.name] for each in wanted]

    def _computed(self, commit: Commit, wanted: Sequence[Configuration]) -> list[float | str]:
        if not wanted or not commit.package:
            return ["it has no gpu_kernels"] * len(wanted)
        asked = [(each.benchmark, dict(each.params)) for each in wanted]
        try:
            found: list[float | str] = probe.ask(commit.hash, "values", asked, self._root)
        except probe.PackageError as error:
            return [str(error)] * len(wanted)
        return found

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> Iterator[Row]:
        """Yield the review's row of each configuration that both commits have a number of."""
        both = zip(wanted, self.read(base, wanted), self.read(head, wanted), strict=True)
        for each, (before, _), (after, _) in both:
            if not isinstance(before, str) and not isinstance(after, str):
                known = METRICS.get(each.metric)
                unit = known.unit if known else suite.RESOURCES[each.metric][0]
                yield Row(each.name, each.kind.value, unit, before, after, exact(before, after))


class Exact:
    """Judges commits by one counted or compiled number.

    Parameters
    ----------
    configuration : Configuration
        The number.
    numbers : Numbers
        Of all commits.
    good, bad : Commit
        The ends of the range. They have it.
    """

    def __init__(self, configuration: Configuration, numbers: Numbers, good: Commit, bad: Commit) -> None:
        self._configuration, self._numbers, self._good, self._bad = configuration, numbers, good, bad
        self.arch = configuration.params.get("arch", ARCH)

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row; None where one of them has no number."""
        return next(self._numbers.rows(base, head, [self._configuration]), None)

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        ((value, source),) = self._numbers.read(commit, [self._configuration])
        from_good, to_bad = self.row(self._good, commit), self.row(commit, self._bad)
        if isinstance(value, str) or from_good is None or to_bad is None:
            return Step(commit.hash, "skip", SKIPPED, reason=str(value))
        return Step(commit.hash, side(from_good, to_bad), source, value)
