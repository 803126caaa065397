"""The search: what good and bad differ most in, git's search with its judge, and the review of what it found."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from kernelwatch.config import project_root, settings
from kernelwatch.instrument import parent_death
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.review.compare import Review
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store import git
from kernelwatch.suite.registry import Kind
from kernelwatch.workflow.bisect.lines import moved_lines
from kernelwatch.workflow.bisect.metric import Configuration, configurations
from kernelwatch.workflow.bisect.numbers import Numbers
from kernelwatch.workflow.select_results import CannotCompareError


@dataclass
class Search:
    """What was asked, what git looked at, and what came out.

    METRIC means so many configurations, `matched`. The `commits` behind good touch the package, oldest first; `change`
    is the row that good and bad differ most in, None if in none. `log` has each commit that was judged and its verdict,
    as git calls it. One of the `suspects` is the culprit. Without one, `reason` says why. Of the culprit, `review` is
    that of its parent and it, and `lines` have the source lines that it changed in the launch `counted`.
    """

    metric: str
    good: str
    bad: str
    matched: int
    commits: list[str]
    change: Row | None = None
    log: list[tuple[str, str]] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    culprit: str = ""
    reason: str = ""
    review: Review | None = None
    counted: str = ""
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0: found; 1: good and bad do not differ; 125: it cannot be decided, as `git bisect run` has it."""
        return 0 if self.culprit else 125 if self.suspects else 1


def differs(row: Row) -> bool:
    """Return whether the review tells the two apart. A regression that is acknowledged is one all the same."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def search(metric: str, wanted: Sequence[Configuration], good: str, bad: str, numbers: Numbers) -> Search:
    """Search the commit that moved one of the wanted numbers most.

    Raises CannotCompareError where good is no ancestor of bad, one has no number, or git's search stopped.
    """
    root, package = numbers.root, settings.package_name() or "."
    if git.asked(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise CannotCompareError(
            f"{good[:8]} is no ancestor of {bad[:8]}: give as GOOD a commit that BAD comes from; "
            f"where they part: git merge-base {good[:8]} {bad[:8]}"
        )
    touching = git.text(root, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", package)
    found = Search(metric, good, bad, len(wanted), touching.split())
    rows = numbers.compared(good, bad, wanted).rows  # the worst first
    found.change = next(filter(differs, rows), None)
    doubts = [row for row in rows if row.judgement.verdict is Verdict.UNDECIDED]
    if found.change is None:
        told = f"{len(doubts)} of {len(rows)} are undecided: {doubts[0].judgement.reason}" if doubts else ""
        found.reason = told or f"the same by the review's verdict (numbers compared: {len(rows)})"
    elif not found.commits:
        found.reason = f"no commit between them touches {settings.package_name() or 'the project'}"
    else:
        _bisect(found, found.change, numbers, package)
        if len(found.suspects) == 1:
            _examine(found, next(each for each in wanted if each.name == found.change.name), numbers)
    return found


def _bisect(found: Search, change: Row, numbers: Numbers, package: str) -> None:
    """Have git search, between the values of both ends."""
    words = ["judge", change.name, "--between", repr(change.base), repr(change.head)]
    words += ["--machine", numbers.machine] if numbers.machine else []
    told = {project_root.VARIABLE: str(numbers.root), parent_death.RUN: str(os.getpid())}
    told["PYTHONPATH"] = os.pathsep.join([*project_root.list_libraries(), os.environ.get("PYTHONPATH", "")])
    with _worktree(found.bad, numbers.root) as tree, mock.patch.dict(os.environ, told):
        start = ("start", "--no-checkout", "--first-parent", found.bad, found.good, "--", package)
        git.text(tree, "bisect", *start)
        log = git.text(tree, "bisect", "log")
        if "first bad commit" not in log:
            git.shown(tree, "bisect", "run", sys.executable, "-m", "kernelwatch", *words)
            log = git.text(tree, "bisect", "log")
    found.log = [(commit, verdict) for verdict, commit in re.findall(r"^# (good|bad|skip): \[(\w+)\]", log, re.M)][2:]
    left = re.findall(r"^# (?:possible )?first bad commit: \[(\w+)\]", log, re.MULTILINE)
    found.suspects = [commit for commit in found.commits if commit in left]
    if not found.suspects:
        raise CannotCompareError("git bisect run stopped; what stopped it is said above")
    if len(found.suspects) > 1:
        found.reason = f"{len(found.suspects)} commits are left, and those between cannot be judged"


@contextmanager
def _worktree(commit: str, root: Path) -> Iterator[Path]:
    """Give a worktree without files, and take it away, also after Ctrl-C or if this process is asked to end."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="bisect-") as folder:
        tree = Path(folder) / Path(folder).name
        git.text(root, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), commit)
        try:
            yield tree
        finally:
            git.text(root, "worktree", "remove", "--force", str(tree))
            signal.signal(signal.SIGTERM, before)


def _examine(found: Search, configuration: Configuration, numbers: Numbers) -> None:
    """Review the last suspect against its parent, beside all numbers of its kernel, dtype and flags."""
    root, (commit,), launch = numbers.root, found.suspects, configuration.launch
    parent, *merged = git.text(root, "show", "--no-patch", "--format=%P", commit).split()
    exact = ((each, each.launch) for each in configurations() if each.kind is not Kind.TIMED)
    alike = [(one, its) for one, its in exact if (its.kernel, its.dtype) == (launch.kernel, launch.dtype)]
    beside = [(one, its) for one, its in alike if its.flags in (launch.flags, FLAGS)]
    review = numbers.compared(parent, commit, [configuration, *(one for one, _ in beside)])
    row = next((row for row in review.rows if row.name == configuration.name), None)
    if row is None or not differs(row):
        verdict = row.judgement.verdict.value if row else "unknown"
        found.reason = f"{commit[:8]} is the last one left, but the review of it and its parent is {verdict}"
        return
    found.culprit, found.review = commit, review
    if merged:
        left = git.text(root, "merge-base", parent, merged[0])
        found.notes.append(f"it merges a branch; to search there: GOOD={left[:8]} BAD={merged[0][:8]}")
    if counted := [its for one, its in beside if one.kind is Kind.COUNTED]:
        launch = launch if launch in counted else counted[0]
        try:
            found.lines, found.counted = list(moved_lines(parent, commit, launch, root)), str(launch)
        except CannotCompareError as error:
            found.notes.append(f"the source lines cannot be counted: {error}")
