"""The search: the configuration that good and bad differ most in, git's search with its judge, and what is found."""

from __future__ import annotations

import re
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelwatch import settings
from kernelwatch.review.bisect.commits import Commit, between, described, suspects
from kernelwatch.review.bisect.culprit import Culprit, examine
from kernelwatch.review.bisect.judging import Exact, Numbers, Step, Timed, differs
from kernelwatch.review.bisect.metric import Configuration, matching
from kernelwatch.review.bisect.times import Times
from kernelwatch.review.commits import CannotCompareError, resolve
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict, exact
from kernelwatch.show.text import plain, quantity
from kernelwatch.store import git
from kernelwatch.suite import Kind
from kernelwatch.toolchain import releases as compilers

#: What knows one configuration's number at any commit, or what the review says of two.
Judge = Exact | Timed

#: Characters of a reason in the line of a step.
_REASON = 60


@dataclass
class Search:
    """What was asked, what was looked at, and what came out: what `--json` prints.

    `matched` says how many configurations METRIC means, `commits` how many lie between good and bad and touch the
    package, first parents only. `change` is the review of good and bad; None if they do not differ. One of the
    `suspects` is the culprit. Without one, `reason` says why.
    """

    metric: str
    good: str
    bad: str
    matched: int = 0
    commits: dict[str, int] = field(default_factory=dict)
    change: Row | None = None
    steps: list[Step] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    culprit: Culprit | None = None
    reason: str = ""
    seconds: float = 0.0
    subjects: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0: found; 1: good and bad do not differ; 125: it cannot be decided, as `git bisect run` has it."""
        return 0 if self.culprit else 125 if self.change else 1


def search(metric: str, good: str, bad: str, machine: str | None, root: Path, say: Callable[[str], None]) -> Search:
    """Search the commit that moved a number, as the command is told; `say` takes a line about the progress.

    Raises
    ------
    CannotCompareError
        The words name no configuration, good and bad cannot be judged, or one of them does not build.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="judge-") as scratch:
        ends = Ends(metric, good, bad, machine, root, Path(scratch), say)
        count = int(git.text(root, "rev-list", "--count", "--first-parent", f"{ends.good}..{ends.bad}"))
        commits = {"between": count, "touching": len(ends.commits) - 1}
        found = Search(metric, ends.good, ends.bad, len(ends.wanted), commits)
        found.subjects = {commit.hash: commit.subject for commit in ends.commits}
        judge, found.reason = ends.judge()
        if judge is not None and ends.row is not None:
            found.change = ends.row

            def judged(commit: Commit) -> str:
                found.steps.append(judge.step(commit))
                say(f"  {told(found.steps[-1], found)}")
                return found.steps[-1].verdict

            left = suspects(ends.commits, judged, root)
            found.suspects = [commit.hash for commit in left]
            if len(left) > 1:
                found.reason = f"{len(left)} commits are left, and those between cannot be judged"
            else:
                _conclude(found, ends, judge, left[0], say)
    found.seconds = round(time.monotonic() - began, 3)
    return found


class Ends:
    """Good and bad, and the configuration that differs most between them.

    Parameters are those of `search`, and a folder for times that are measured.
    """

    def __init__(
        self, metric: str, good: str, bad: str, machine: str | None, root: Path, scratch: Path,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.wanted = matching(metric)
        compilers.use()
        self.root, self._machine, self._say = root, machine, say
        self._times, self._numbers = Times(root, scratch), Numbers(root)
        self.good, self.bad = (resolve(each, root, self._times.commits) for each in (good, bad))
        self.commits = between(self.good, self.bad, root)
        #: What is searched, and the review of good and bad.
        self.configuration = self.wanted[0]
        self.row: Row | None = None

    def judge(self) -> tuple[Judge | None, str]:
        """Return who judges the commits between; without a change None, and why."""
        rows = self._rows()
        changes = list(filter(differs, rows))
        if not changes:
            doubts = [row for row in rows if row.judgement.verdict is Verdict.UNDECIDED]
            if doubts:
                return None, f"{len(doubts)} of {len(rows)} are undecided: {doubts[0].judgement.reason}"
            return None, f"the same by the review's verdict (numbers compared: {len(rows)})"
        self.row = row = min(changes, key=lambda row: row.badness()[:2])  # of equal ones the first of the suite
        self.configuration = next(each for each in self.wanted if each.name == row.name)
        if self.configuration.kind is not Kind.TIMED:
            return Exact(self.configuration, self._numbers, self.commits), ""
        timed = Timed(self.configuration, self._times, self.commits, self.root)
        if timed.launched(self.commits[0]) == timed.launched(self.commits[-1]):
            return None, f"both launch the same machine code: what moved the time is not in {settings.package()}"
        return timed, ""

    def _rows(self) -> list[Row]:
        """Return the review of good and bad: times if one changed, else what is counted and compiled, too."""
        good, bad = self.commits[0], self.commits[-1]
        timed = [each for each in self.wanted if each.kind is Kind.TIMED]
        others = [each for each in self.wanted if each.kind is not Kind.TIMED]
        rows = self._timed_rows(timed, needed=not others) if timed else []
        if not any(map(differs, rows)):
            if others:
                self._say(f"comparing numbers ({len(others)}) of {self.good[:8]} and {self.bad[:8]}")
            rows += self._numbers.rows(good, bad, others)
        if not rows:
            known = (value for each in (good, bad) for value in self._numbers.read(each, others[:1]))
            why = next((value for value in known if isinstance(value, str)), "not timed")
            raise CannotCompareError(f"good and bad have no number of {self.wanted[0].name} in common: {why}")
        return rows

    def _timed_rows(self, timed: Sequence[Configuration], *, needed: bool) -> list[Row]:
        """Return the review of times, measured here if they are not stored. Raises as `search` if they are needed."""
        good, bad, times = self.commits[0], self.commits[-1], self._times
        try:
            times.choose(self._machine, good, bad)
        except CannotCompareError:
            if needed:
                raise
            return []
        self._say(f"comparing times ({len(timed)}) of {self.good[:8]} and {self.bad[:8]} on {times.machine}")
        found = times.rows(good, bad, timed)
        if not found and times.can_measure:
            times.measure([good, bad], timed)
            found = times.rows(good, bad, timed)
        if not found and needed:
            raise CannotCompareError(
                f"{times.machine} has no times of both {self.good[:8]} and {self.bad[:8]}; "
                "search where there is such a GPU"
            )
        return found


def judge_one(metric: str, machine: str | None, root: Path) -> Step:
    """Return what is said of the commit that git's own bisection is at, between its first good and its first bad one.

    Raises
    ------
    CannotCompareError
        There is no bisection, METRIC means several configurations, or as of `search`.
    """
    try:
        log, at = git.text(root, "bisect", "log"), git.text(root, "rev-parse", "--verify", "BISECT_HEAD")
    except git.GitError as error:
        raise CannotCompareError(f"{error}; begin with git bisect start --no-checkout") from None
    told = [re.search(rf"^# {side}: \[(\w+)\]", log, re.MULTILINE) for side in ("good", "bad")]
    good, bad = (each[1] if each else "" for each in told)
    if not (good and bad):
        raise CannotCompareError(f"git bisect was told no {'bad' if good else 'good'} commit")
    with tempfile.TemporaryDirectory(prefix="judge-") as scratch:
        ends = Ends(metric, good, bad, machine, root, Path(scratch), lambda _: None)
        if len(ends.wanted) > 1:
            raise CannotCompareError(f"METRIC means {len(ends.wanted)} configurations; give the whole name of one")
        judge, reason = ends.judge()
        if judge is None:
            raise CannotCompareError(f"{good[:8]} and {bad[:8]} do not differ: {reason}")
        return judge.step(*described([at], root))


def _conclude(found: Search, ends: Ends, judge: Judge, commit: Commit, say: Callable[[str], None]) -> None:
    """Look at the commit that is left, if the review confirms that it made the change."""
    before = ends.commits[ends.commits.index(commit) - 1]
    row = judge.row(before, commit)
    if row is None or not differs(row):
        verdict = row.judgement.verdict.value if row else "unknown"
        found.reason = f"{commit.hash[:8]} is the last one left, but the review of it and its parent is {verdict}"
        return
    say(f"looking at {commit.hash[:8]}")
    found.culprit = examine(ends.configuration, before, commit, row, judge.arch, ends.root)
    found.culprit.notes.extend(remainder(ends, before, commit, row))


def remainder(ends: Ends, before: Commit, commit: Commit, row: Row) -> list[str]:
    """Return where the rest of the change is, if this commit did not do all of it."""
    assert ends.row is not None, "good and bad differ"
    parts = (
        (ends.row.base, row.base, ends.good, before.hash),
        (row.head, ends.row.head, commit.hash, ends.bad),
    )
    return [
        f"other commits moved it too, {quantity(was, row.unit)} -> {quantity(then, row.unit)}; "
        f"to find them: GOOD={good[:8]} BAD={bad[:8]}"
        for was, then, good, bad in parts
        if exact(was, then, ends.row.judgement.threshold).is_change
    ]


def told(step: Step, found: Search) -> str:
    """Return a step as one line."""
    value = "" if step.value is None or found.change is None else f" {quantity(step.value, found.change.unit)}"
    reason = f": {textwrap.shorten(plain(step.reason), _REASON, placeholder=' ...')}" if step.reason else ""
    return f"{step.commit[:8]} {step.verdict}{value} ({step.source}{reason})  {plain(found.subjects[step.commit])}"
