"""Counted and compiled numbers of commits: exact, without a GPU, and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwatch.asv import suite
from kernelwatch.counting.transactions import METRICS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.judging import Source, Step, side
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.bisect.stored import Stored
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import exact


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
        #: (package, configuration's name) -> its number, or why it has none, and where that comes from.
        self._known: dict[tuple[str, str], tuple[float | str, Source]] = {}

    def read(self, commit: Commit, wanted: Sequence[Configuration]) -> list[tuple[float | str, Source]]:
        """Return the number of each configuration at a commit, or why there is none, and where it comes from."""
        lacking = []
        for each in wanted:
            key = commit.package, each.name
            if key in self._known:
                continue
            found = self._stored.exact(each.benchmark, each.params, commit.package)
            if found is None:
                lacking.append(each)
            else:
                self._known[key] = found, Source.STORED
        for each, value in zip(lacking, self._computed(commit, lacking), strict=True):
            self._known[commit.package, each.name] = value, Source.BUILT
        return [self._known[commit.package, each.name] for each in wanted]

    def _computed(self, commit: Commit, wanted: Sequence[Configuration]) -> list[float | str]:
        if not wanted:
            return []
        if not commit.package:
            return ["it has no gpu_kernels"] * len(wanted)
        try:
            asked = [(each.benchmark, dict(each.params)) for each in wanted]
            found: list[float | str] = probe.ask(commit.hash, "values", asked, self._root)
        except probe.PackageError as error:
            return [str(error)] * len(wanted)
        return found

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> Iterator[Row]:
        """Yield the review's row of each configuration that both commits have a number of."""
        both = zip(wanted, self.read(base, wanted), self.read(head, wanted), strict=True)
        for each, (before, _), (after, _) in both:
            if not isinstance(before, str) and not isinstance(after, str):
                yield _row(each, before, after)


def _row(configuration: Configuration, base: float, head: float) -> Row:
    launch = suite.launch(configuration.benchmark, configuration.params)
    return Row(
        name=configuration.name,
        kind=configuration.kind.value,
        unit=METRICS[configuration.metric].unit
        if configuration.metric in METRICS
        else suite.RESOURCES[configuration.metric][0],
        base=base,
        head=head,
        judgement=exact(base, head),
        benchmark=configuration.benchmark,
        params=configuration.params,
        kernel=launch.kernel if launch else "",
    )


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
        self._configuration, self._numbers = configuration, numbers
        self._good, self._bad = good, bad

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row; None where one of them has no number."""
        return next(self._numbers.rows(base, head, [self._configuration]), None)

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        ((value, source),) = self._numbers.read(commit, [self._configuration])
        if isinstance(value, str):
            return Step(commit, None, Source.SKIPPED, reason=value)
        from_good, to_bad = self.row(self._good, commit), self.row(commit, self._bad)
        assert from_good is not None, "both have a number"
        assert to_bad is not None, "both have a number"
        return Step(commit, side(from_good, to_bad), source, value)
