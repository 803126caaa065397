"""The search: the number that differs most, git's bisection by the judge, and the review of the culprit."""

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
from kernelwatch.review.commit_review import Review
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store import git
from kernelwatch.suite.benchmark_names import Kind
from kernelwatch.workflow.bisect.lines import list_moved_lines
from kernelwatch.workflow.bisect.metric import SuiteConfiguration, list_configurations
from kernelwatch.workflow.bisect.numbers import CommitNumbers
from kernelwatch.workflow.select_results import CannotCompareError


@dataclass
class SearchOutcome:
    """The outcome of a search, with its question and the commits that git judged.

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


def is_different(row: Row) -> bool:
    """Return whether the review tells the two apart. A regression that is acknowledged is one all the same."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def search_culprit(
    metric: str, configurations: Sequence[SuiteConfiguration], good: str, bad: str, numbers: CommitNumbers
) -> SearchOutcome:
    """Search the commit that moved one of the wanted numbers most.

    Raises CannotCompareError where good is no ancestor of bad, one has no number, or git's search stopped.
    """
    root, package = numbers.root, settings.package_name() or "."
    if good == bad:
        raise CannotCompareError(f"GOOD and BAD are the same commit, {good[:8]}; give an earlier GOOD")
    if git.try_text(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise CannotCompareError(
            f"{good[:8]} is no ancestor of {bad[:8]}: give as GOOD a commit that BAD comes from; "
            f"where they part: git merge-base {good[:8]} {bad[:8]}"
        )
    touching = git.text(root, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", package)
    outcome = SearchOutcome(metric, good, bad, len(configurations), touching.split())
    rows = numbers.review_commits(good, bad, configurations).rows  # the worst first
    outcome.change = next(filter(is_different, rows), None)
    doubts = [row for row in rows if row.judgement.verdict is Verdict.UNDECIDED]
    if outcome.change is None:
        doubt = f"{len(doubts)} of {len(rows)} are undecided: {doubts[0].judgement.reason}" if doubts else ""
        outcome.reason = doubt or f"the same by the review's verdict (numbers compared: {len(rows)})"
    elif not outcome.commits:
        outcome.reason = f"no commit between them touches {settings.package_name() or 'the project'}"
    else:
        _bisect(outcome, outcome.change, numbers, package)
        if len(outcome.suspects) == 1:
            _examine(
                outcome,
                next(configuration for configuration in configurations if configuration.name == outcome.change.name),
                numbers,
            )
    return outcome


def _bisect(outcome: SearchOutcome, change: Row, numbers: CommitNumbers, package: str) -> None:
    """Have git search, between the values of both ends."""
    words = ["judge", change.name, "--between", repr(change.base), repr(change.head)]
    words += ["--machine", numbers.machine] if numbers.machine else []
    environment = {project_root.VARIABLE: str(numbers.root), parent_death.RUN: str(os.getpid())}
    environment["PYTHONPATH"] = os.pathsep.join([*project_root.list_libraries(), os.environ.get("PYTHONPATH", "")])
    with _worktree(outcome.bad, numbers.root) as tree, mock.patch.dict(os.environ, environment):
        start = ("start", "--no-checkout", "--first-parent", outcome.bad, outcome.good, "--", package)
        git.text(tree, "bisect", *start)
        log = git.text(tree, "bisect", "log")
        if "first bad commit" not in log:
            git.run_visibly(tree, "bisect", "run", sys.executable, "-m", "kernelwatch", *words)
            log = git.text(tree, "bisect", "log")
    outcome.log = [(commit, verdict) for verdict, commit in re.findall(r"^# (good|bad|skip): \[(\w+)\]", log, re.M)][2:]
    remaining = re.findall(r"^# (?:possible )?first bad commit: \[(\w+)\]", log, re.MULTILINE)
    outcome.suspects = [commit for commit in outcome.commits if commit in remaining]
    if not outcome.suspects:
        raise CannotCompareError("git bisect run stopped; what stopped it is said above")
    if len(outcome.suspects) > 1:
        outcome.reason = f"{len(outcome.suspects)} commits are left, and those between cannot be judged"


@contextmanager
def _worktree(commit: str, root: Path) -> Iterator[Path]:
    """Give a worktree without files, and take it away, also after Ctrl-C or if this process is asked to end."""
    previous_handler = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="bisect-") as folder:
        tree = Path(folder) / Path(folder).name
        git.text(root, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), commit)
        try:
            yield tree
        finally:
            git.text(root, "worktree", "remove", "--force", str(tree))
            signal.signal(signal.SIGTERM, previous_handler)


def _examine(outcome: SearchOutcome, configuration: SuiteConfiguration, numbers: CommitNumbers) -> None:
    """Review the last suspect against its parent, beside all numbers of its kernel, dtype and flags."""
    root, (commit,), launch = numbers.root, outcome.suspects, configuration.launch
    parent, *merged = git.text(root, "show", "--no-patch", "--format=%P", commit).split()
    exact = ((candidate, candidate.launch) for candidate in list_configurations() if candidate.kind is not Kind.TIMED)
    alike = [
        (candidate, candidate_launch)
        for candidate, candidate_launch in exact
        if (candidate_launch.kernel, candidate_launch.dtype) == (launch.kernel, launch.dtype)
    ]
    related = [
        (candidate, candidate_launch)
        for candidate, candidate_launch in alike
        if candidate_launch.flags in (launch.flags, FLAGS)
    ]
    review = numbers.review_commits(parent, commit, [configuration, *(candidate for candidate, _ in related)])
    row = next((row for row in review.rows if row.name == configuration.name), None)
    if row is None or not is_different(row):
        verdict = row.judgement.verdict.value if row else "unknown"
        outcome.reason = f"{commit[:8]} is the last one left, but the review of it and its parent is {verdict}"
        return
    outcome.culprit, outcome.review = commit, review
    if merged:
        merge_base = git.text(root, "merge-base", parent, merged[0])
        outcome.notes.append(f"it merges a branch; to search there: GOOD={merge_base[:8]} BAD={merged[0][:8]}")
    if counted := [candidate_launch for candidate, candidate_launch in related if candidate.kind is Kind.COUNTED]:
        launch = launch if launch in counted else counted[0]
        try:
            outcome.lines, outcome.counted = list(list_moved_lines(parent, commit, launch, root)), str(launch)
        except CannotCompareError as error:
            outcome.notes.append(f"the source lines cannot be counted: {error}")
