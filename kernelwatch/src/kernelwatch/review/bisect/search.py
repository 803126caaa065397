"""The search: the configuration that good and bad differ most in, git's search with its judge, and what is found."""

from __future__ import annotations

import re
import textwrap
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
from kernelwatch.review.verdict import Verdict
from kernelwatch.show.text import plain, quantity
from kernelwatch.store import git
from kernelwatch.suite import Kind
from kernelwatch.toolchain import releases as compilers

#: What knows one configuration's number at any commit, or what the review says of two.
Judge = Exact | Timed

#: Takes a line about the progress.
Say = Callable[[str], None]

#: Characters of a reason in the line of a step.
_REASON = 60


class NoDifferenceError(CannotCompareError):
    """The review does not tell good and bad apart; the message says why."""


@dataclass
class Search:
    """What was asked, what was looked at, and what came out: what `--json` prints.

    `matched` says how many configurations METRIC means, `commits` how many behind good touch the package, first parents
    only. `change` is the review of good and bad; None if they do not differ. One of the `suspects` is the culprit.
    Without one, `reason` says why.
    """

    metric: str
    good: str
    bad: str
    matched: int = 0
    commits: int = 0
    change: Row | None = None
    steps: list[Step] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    culprit: Culprit | None = None
    reason: str = ""
    subjects: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0: found; 1: good and bad do not differ; 125: it cannot be decided, as `git bisect run` has it."""
        return 0 if self.culprit else 125 if self.change else 1


def search(metric: str, good: str, bad: str, machine: str | None, root: Path, say: Say) -> Search:
    """Search the commit that moved a number, as the command is told.

    Raises
    ------
    CannotCompareError
        The words name no configuration, good and bad cannot be judged, or one of them does not build.
    """
    wanted = matching(metric)
    compilers.use()
    times = Times(root)
    good, bad = (resolve(each, root, times.commits) for each in (good, bad))
    commits = between(good, bad, root)
    subjects = {commit.hash: commit.subject for commit in commits}
    found = Search(metric, good, bad, len(wanted), len(commits) - 1, subjects=subjects)
    try:
        judge = _judge(wanted, commits, times, machine, root, say)
    except NoDifferenceError as error:
        found.reason = str(error)
        return found
    found.change = judge.change

    def judged(commit: Commit) -> str:
        found.steps.append(judge.step(commit))
        say(f"  {told(found.steps[-1], found)}")
        return found.steps[-1].verdict

    left = suspects(commits, judged, root)
    found.suspects = [commit.hash for commit in left]
    if len(left) > 1:
        found.reason = f"{len(left)} commits are left, and those between cannot be judged"
        return found
    (commit,), before = left, commits[commits.index(left[0]) - 1]
    row = judge.row(before, commit)
    if row is None or not differs(row):
        verdict = row.judgement.verdict.value if row else "unknown"
        found.reason = f"{commit.hash[:8]} is the last one left, but the review of it and its parent is {verdict}"
    else:
        say(f"looking at {commit.hash[:8]}")
        found.culprit = examine(judge.configuration, before, commit, row, root)
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
    ends = [re.search(rf"^# {side}: \[(\w+)\]", log, re.MULTILINE) for side in ("good", "bad")]
    good, bad = (each[1] if each else "" for each in ends)
    if not (good and bad):
        raise CannotCompareError(f"git bisect was told no {'bad' if good else 'good'} commit")
    wanted = matching(metric)
    if len(wanted) > 1:
        raise CannotCompareError(f"METRIC means {len(wanted)} configurations; give the whole name of one")
    compilers.use()
    judge = _judge(wanted, between(good, bad, root), Times(root), machine, root, lambda _: None)
    return judge.step(*described([at], root))


def _judge(
    wanted: Sequence[Configuration], commits: Sequence[Commit], times: Times, machine: str | None, root: Path, say: Say
) -> Judge:
    """Return who judges the commits between the first and the last, by what differs most between these two."""
    good, bad, numbers = commits[0], commits[-1], Numbers(root)
    timed = {each.kind is Kind.TIMED for each in wanted}
    if len(timed) > 1:
        raise CannotCompareError("METRIC means times and other numbers: add time, counted or compiled to its words")
    if is_timed := timed.pop():
        times.choose(machine, good, bad)
    say("comparing good and bad: " + (f"times on {times.machine}" if is_timed else "numbers") + f" ({len(wanted)})")
    rows = times.rows(good, bad, wanted) if is_timed else numbers.rows(good, bad, wanted)
    if not rows and is_timed and times.can_measure:
        times.measure([good, bad], wanted)
        rows = times.rows(good, bad, wanted)
    if not rows and is_timed:
        raise CannotCompareError(f"{times.machine} has no times of both good and bad; search where there is such a GPU")
    if not rows:
        known = (value for each in (good, bad) for value in numbers.read(each, wanted[:1]))
        why = next(value for value in known if isinstance(value, str))
        raise CannotCompareError(f"good and bad have no number of {wanted[0].name} in common: {why}")
    if not any(map(differs, rows)):
        doubts = [row for row in rows if row.judgement.verdict is Verdict.UNDECIDED]
        told = f"{len(doubts)} of {len(rows)} are undecided: {doubts[0].judgement.reason}" if doubts else ""
        raise NoDifferenceError(told or f"the same by the review's verdict (numbers compared: {len(rows)})")
    change = min(filter(differs, rows), key=lambda row: row.badness()[:2])  # of equal ones the first of the suite
    configuration = next(each for each in wanted if each.name == change.name)
    if not is_timed:
        return Exact(configuration, change, numbers, commits)
    judge = Timed(configuration, change, times, commits, root)
    if judge.launched(good) == judge.launched(bad):
        what = f"what moved the time is not in {settings.package()}"
        raise NoDifferenceError(f"both launch the same machine code: {what}")
    return judge


def told(step: Step, found: Search) -> str:
    """Return a step as one line."""
    value = "" if step.value is None or found.change is None else f" {quantity(step.value, found.change.unit)}"
    reason = f": {textwrap.shorten(plain(step.reason), _REASON, placeholder=' ...')}" if step.reason else ""
    return f"{step.commit[:8]} {step.verdict}{value} ({step.source}{reason})  {plain(found.subjects[step.commit])}"
