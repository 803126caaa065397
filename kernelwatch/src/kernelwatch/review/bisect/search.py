"""The search: choose the configuration that good and bad differ most in, halve, and examine what is found."""

from __future__ import annotations

import subprocess
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asv.util import human_time

from kernelwatch.asv.suite import Kind
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.culprit import Culprit, examine
from kernelwatch.review.bisect.exact import Exact, Numbers
from kernelwatch.review.bisect.halving import Halving
from kernelwatch.review.bisect.judging import Judge, Source, Step, differs
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.bisect.stored import Stored
from kernelwatch.review.bisect.times import Reviews, Timed
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, exact
from kernelwatch.show.text import plain, quantity

#: The architecture whose machine code is compared where the number is of none.
ARCH = "sm_90"

#: Characters of a reason in the line of a step.
_REASON = 60


@dataclass
class Search:
    """What was asked, what was looked at, and what came out.

    Parameters
    ----------
    metric : str
        As given.
    good, bad : str
        Hashes of the ends.
    matched : int
        How many configurations METRIC means.
    total : int
        Commits between good and bad, bad included, first parents only.
    commits : list of Commit
        Good, and those behind it that touch the package.
    row : Row, optional
        The review of good and bad; None if they do not differ.
    steps : list of Step
        The commits that were looked at.
    suspects : list of Commit
        Of which one is the culprit.
    culprit : Culprit, optional
        It.
    reason : str
        Why there is none.
    seconds : float
        What it took.
    """

    metric: str
    good: str
    bad: str
    matched: int
    total: int
    commits: list[Commit]
    row: Row | None = None
    steps: list[Step] = field(default_factory=list)
    suspects: list[Commit] = field(default_factory=list)
    culprit: Culprit | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0: found; 1: good and bad do not differ; 125: it cannot be decided, as `git bisect run` has it."""
        return 0 if self.culprit else 125 if self.row else 1

    def count(self, source: Source) -> int:
        """How many commits were judged so."""
        return sum(step.source is source for step in self.steps)


class Searcher:
    """Searches commits of a repository.

    Parameters
    ----------
    root : Path
        The repository.
    stored : Stored
        Its results.
    machine : str or None
        Whose times count, if somebody chose one.
    scratch : Path
        A folder for times that are measured.
    say : callable
        Takes a line about the progress.
    """

    def __init__(
        self, root: Path, stored: Stored, machine: str | None, scratch: Path, say: Callable[[str], None]
    ) -> None:
        self._root, self._stored, self._machine, self._scratch, self._say = root, stored, machine, scratch, say
        self._numbers = Numbers(root, stored)
        self._reviews: Reviews | None = None

    def run(self, search: Search, wanted: Sequence[Configuration]) -> None:
        """Search; what is found goes into `search`.

        Raises
        ------
        CannotCompareError
            Good and bad cannot be judged.
        PackageError
            Good or bad does not build.
        """
        began = time.monotonic()
        chosen = self._chosen(search, wanted)
        if chosen is not None:
            configuration, search.row = chosen
            judge = self._judge(configuration, search.commits)
            if isinstance(judge, Timed) and judge.launched(search.commits[0]) == judge.launched(search.commits[-1]):
                search.reason = "both launch the same machine code: what moved the time is not in gpu_kernels"
                search.row = None
            else:
                self._halve(search, judge, configuration)
        search.seconds = time.monotonic() - began

    def _chosen(self, search: Search, wanted: Sequence[Configuration]) -> tuple[Configuration, Row] | None:
        """Return the configuration with the largest change, a worse one first, a time before other numbers."""
        good, bad = search.commits[0], search.commits[-1]
        timed = [each for each in wanted if each.kind is Kind.TIMED]
        others = [each for each in wanted if each.kind is not Kind.TIMED]
        rows = self._timed_rows(search, timed, needed=not others) if timed else []
        if not any(map(differs, rows)):
            if others:
                self._say(f"comparing numbers ({len(others)}) of {search.good[:8]} and {search.bad[:8]}")
            rows += self._numbers.rows(good, bad, others)
        if not rows:
            why = next(
                (value for each in (good, bad) for value, _ in self._numbers.read(each, others[:1])), "not timed"
            )
            raise CannotCompareError(f"good and bad have no number of {wanted[0].name} in common: {why}")
        changes = list(filter(differs, rows))
        if not changes:
            doubts = [row for row in rows if row.judgement.verdict is Verdict.UNDECIDED]
            search.reason = f"the same by the review's verdict (numbers compared: {len(rows)})"
            if doubts:
                search.reason = f"{len(doubts)} of {len(rows)} are undecided: {doubts[0].judgement.reason}"
            return None
        row = min(changes, key=lambda row: row.badness()[:2])  # of equal ones the first of the suite
        return next(each for each in wanted if each.name == row.name), row

    def _timed_rows(self, search: Search, timed: Sequence[Configuration], *, needed: bool) -> list[Row]:
        """Return the review of times, measured here if they are not stored. Raises as `run` if they are needed."""
        good, bad = search.commits[0], search.commits[-1]
        try:
            name = self._stored.machine(self._machine, good.package, bad.package)
        except CannotCompareError:
            if needed:
                raise
            return []
        self._reviews = Reviews(name, self._root, self._stored, self._scratch)
        self._say(f"comparing times ({len(timed)}) of {search.good[:8]} and {search.bad[:8]} on {name}")
        found = self._reviews.rows(good, bad, timed)
        if not found and self._reviews.can_measure:
            self._reviews.measure([good, bad], timed)
            found = self._reviews.rows(good, bad, timed)
        if not found and needed:
            raise CannotCompareError(
                f"{name} has no times of both {search.good[:8]} and {search.bad[:8]}; search where it has such a GPU"
            )
        return found

    def _judge(self, configuration: Configuration, commits: Sequence[Commit]) -> Judge:
        if configuration.kind is Kind.TIMED:
            assert self._reviews is not None, "its times were compared"
            return Timed(configuration, self._reviews, commits, self._root)
        return Exact(configuration, self._numbers, commits[0], commits[-1])

    def _halve(self, search: Search, judge: Judge, configuration: Configuration) -> None:
        halving, began = Halving(len(search.commits) - 1), time.monotonic()
        while (place := halving.next()) is not None:
            self._say(_progress(len(search.steps), halving.steps_left(), time.monotonic() - began))
            step = judge.step(search.commits[place])
            halving.note(place, step.is_bad)
            search.steps.append(step)
            self._say(f"  {told(step, search.row)}")
        search.suspects = [search.commits[suspect] for suspect in halving.suspects]
        if len(search.suspects) > 1:
            search.reason = f"{len(search.suspects)} commits are left, and those between cannot be judged"
            return
        before, (commit,) = search.commits[halving.good], search.suspects
        row = judge.confirmed(before, commit) if isinstance(judge, Timed) else judge.row(before, commit)
        if row is None or not differs(row):
            verdict = row.judgement.verdict.value if row else "unknown"
            search.reason = f"{commit.hash[:8]} is the last one left, but the review of it and its parent is {verdict}"
            return
        self._say(f"looking at {commit.hash[:8]}")
        arch = judge.arch if isinstance(judge, Timed) else configuration.params.get("arch", ARCH)
        search.culprit = examine(configuration, before, commit, row, arch, self._root)
        search.culprit.notes.extend(_remainder(search, before, commit, row))


def _progress(done: int, left: int, seconds: float) -> str:
    rest = f", {human_time(seconds / done * left)} left" if done else ""
    return f"step {done + 1} of about {done + left}{rest}"


def told(step: Step, row: Row | None) -> str:
    """Return a step as one line."""
    value = "" if step.value is None or row is None else f" {quantity(step.value, row.unit)}"
    reason = f": {textwrap.shorten(plain(step.reason), _REASON, placeholder=' ...')}" if step.reason else ""
    return f"{step.commit.hash[:8]} {step.verdict}{value} ({step.source.value}{reason})  {plain(step.commit.subject)}"


def _remainder(search: Search, before: Commit, commit: Commit, row: Row) -> list[str]:
    """Return where the rest of the change is, if this commit did not do all of it."""
    assert search.row is not None, "good and bad differ"
    threshold = search.row.judgement.threshold
    parts = (
        (search.row.base, row.base, search.good, before.hash),
        (row.head, search.row.head, commit.hash, search.bad),
    )
    return [
        f"other commits moved it too, {quantity(was, row.unit)} -> {quantity(then, row.unit)}; "
        f"to find them: GOOD={good[:8]} BAD={bad[:8]}"
        for was, then, good, bad in parts
        if exact(was, then, threshold).is_change
    ]


def commits_between(good: str, bad: str, root: Path) -> int:
    """Return how many commits lie behind good up to bad, first parents only."""
    words = ["git", "rev-list", "--count", "--first-parent", f"{good}..{bad}"]
    return int(subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout)
