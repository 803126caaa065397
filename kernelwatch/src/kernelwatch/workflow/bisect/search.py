"""The search: choose the number with the worst verdict, bisect with git, review the culprit."""

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelwatch.config import settings
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.review.commit_review import Review
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store import git
from kernelwatch.suite.benchmark_names import Kind
from kernelwatch.workflow.bisect.lines import list_changed_lines
from kernelwatch.workflow.bisect.metric import SuiteConfiguration, list_configurations
from kernelwatch.workflow.bisect.numbers import CommitNumbers, judge_value
from kernelwatch.workflow.select_results import CannotCompareError


@dataclass
class SearchOutcome:
    """The arguments and the outcome of a search.

    `matched` is the number of configurations that METRIC matches. `commits` are those after `good` that touch the
    package, oldest first. `change` is the row of the searched number, None if no configuration differs. `undecided` is
    the number of configurations for which the review of `good` and `bad` is undecided. `log` has (commit, verdict) for
    each commit that was judged. `suspects` are the commits that git's search leaves. If `culprit` is empty, `reason`
    says why. `review` compares the culprit with its parent. `lines` are the changed source lines of the launch
    `counted`.
    """

    metric: str
    good: str
    bad: str
    matched: int
    commits: list[str]
    change: Row | None = None
    undecided: int = 0
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
        """0: found; 1: no difference, or no commit that touches the package; 125: undecided, as in `git bisect run`."""
        if self.culprit:
            return 0
        is_undecided = self.undecided if self.change is None else self.commits
        return 125 if is_undecided else 1


def is_different(row: Row) -> bool:
    """Return whether the review judges a number as different in base and head."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def search_culprit(
    metric: str, configurations: Sequence[SuiteConfiguration], good: str, bad: str, numbers: CommitNumbers
) -> SearchOutcome:
    """Search the commit that changed a number: the number with the worst verdict, and then the largest change.

    Raises CannotCompareError if GOOD is BAD or not an ancestor of BAD, they have no common number, or git's search
    stops.
    """
    root, package = numbers.root, settings.package_name() or "."
    _check_ends(good, bad, root)
    touching = git.text(root, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", package)
    outcome = SearchOutcome(metric, good, bad, len(configurations), touching.split())
    review = numbers.review_commits(good, bad, configurations)
    if numbers.is_stored:  # this machine is the only one with times of both commits
        numbers = replace(numbers, machine=review.machine)
    outcome.change = next(filter(is_different, review.rows), None)  # the worst row is the first
    doubts = [row for row in review.rows if row.judgement.verdict is Verdict.UNDECIDED]
    outcome.undecided = len(doubts)
    if outcome.change is None:
        count = len(review.rows)
        outcome.reason = f"the review's verdict is SAME (numbers compared: {count})"
        if doubts:
            outcome.reason = f"{len(doubts)} of {count} numbers are undecided: {doubts[0].judgement.reason}"
        return outcome
    (searched,) = (candidate for candidate in configurations if candidate.name == outcome.change.name)
    if outcome.commits:
        _bisect(outcome, outcome.change, searched, numbers, package)
    if len(outcome.suspects) == 1:
        _examine(outcome, searched, numbers)
    else:
        outcome.reason = _explain_no_culprit(outcome)
    return outcome


def _check_ends(good: str, bad: str, root: Path) -> None:
    if good == bad:
        raise CannotCompareError(f"GOOD and BAD are the same commit, {good[:8]}; give an earlier GOOD")
    if git.try_text(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise CannotCompareError(
            f"{good[:8]} is not an ancestor of {bad[:8]}; choose an ancestor of BAD as GOOD; "
            f"their common ancestor: git merge-base {good[:8]} {bad[:8]}"
        )


def _explain_no_culprit(outcome: SearchOutcome) -> str:
    """Return why the search ends with no suspect, or with several."""
    if outcome.suspects:
        return f"{len(outcome.suspects)} commits remain, because the commits between them cannot be judged"
    name = settings.package_name() or "the project"
    problem = f"no commit from GOOD to BAD touches {name}"
    if outcome.commits:
        problem = f"all commits that touch {name} are good"
    return f"{problem}; for other causes, run: kernelwatch compare {outcome.good[:8]} {outcome.bad[:8]}"


def _bisect(
    outcome: SearchOutcome, change: Row, configuration: SuiteConfiguration, numbers: CommitNumbers, package: str
) -> None:
    """Let git bisect choose commits, and judge each; set `log` and `suspects` of the outcome.

    There are no suspects if all commits are good: BAD itself is judged only if it touches the package.
    """
    with _add_worktree(outcome.bad, numbers.root) as tree:
        start = ("start", "--no-checkout", "--first-parent", outcome.bad, outcome.good, "--", package)
        git.text(tree, "bisect", *start)
        log, commit = git.text(tree, "bisect", "log"), ""
        while "first bad commit" not in log:
            previous, commit = commit, git.text(tree, "rev-parse", "BISECT_HEAD")
            if commit == previous and f"# good: [{commit}]" in log:
                break  # git repeats the last commit, because all are good
            if commit == previous:
                raise CannotCompareError("git bisect stopped without a result; run the search again")
            print(f"judging {commit[:8]}", file=sys.stderr, flush=True)
            verdict = judge_value(numbers.find_value(commit, configuration), change.base, change.head)
            git.try_text(tree, "bisect", verdict)  # fails if only skipped commits are left
            log = git.text(tree, "bisect", "log")
    judged = re.findall(r"^# (good|bad|skip): \[(\w+)\]", log, re.MULTILINE)[2:]  # after GOOD and BAD themselves
    outcome.log = [(commit, verdict) for verdict, commit in judged]
    remaining = re.findall(r"^# (?:possible )?first bad commit: \[(\w+)\]", log, re.MULTILINE)
    outcome.suspects = [commit for commit in outcome.commits if commit in remaining]


@contextmanager
def _add_worktree(commit: str, root: Path) -> Iterator[Path]:
    """Yield a new worktree at a commit, without its files; remove it at the end, even after Ctrl-C or SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="bisect-") as folder:
        tree = Path(folder) / Path(folder).name
        try:
            git.text(root, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), commit)
            yield tree
        finally:
            # Git locks a worktree while adding it; only a second --force removes a locked one.
            git.try_text(root, "worktree", "remove", "--force", "--force", str(tree))


def _examine(outcome: SearchOutcome, configuration: SuiteConfiguration, numbers: CommitNumbers) -> None:
    """Review the last suspect against its parent: the searched number, and related counted and compiled numbers.

    Related numbers have the same kernel and dtype, and the same or the default flags. If the searched number differs,
    set `culprit`, `review`, `notes`, `lines` and `counted`, else `reason`.
    """
    root, (commit,), launch = numbers.root, outcome.suspects, configuration.launch
    parent, *merged = git.text(root, "show", "--no-patch", "--format=%P", commit).split()
    exact = [candidate for candidate in list_configurations() if candidate.kind is not Kind.TIMED]
    alike = [
        candidate
        for candidate in exact
        if (candidate.launch.kernel, candidate.launch.dtype) == (launch.kernel, launch.dtype)
    ]
    related = [candidate for candidate in alike if candidate.launch.flags in (launch.flags, FLAGS)]
    review = numbers.review_commits(parent, commit, [configuration, *related])
    row = next((row for row in review.rows if row.name == configuration.name), None)
    if row is None or not is_different(row):
        verdict = row.judgement.verdict.value if row else "unknown"
        outcome.reason = f"{commit[:8]} is the last suspect, but compared with its parent, it is {verdict}"
        return
    outcome.culprit, outcome.review = commit, review
    if merged:
        merge_base = git.text(root, "merge-base", parent, merged[0])
        search = f"kernelwatch bisect {shlex.quote(outcome.metric)} {merge_base[:8]} {merged[0][:8]}"
        outcome.notes.append(f"the culprit merges a branch; to search in this branch, run: {search}")
    if counted := [candidate.launch for candidate in related if candidate.kind is Kind.COUNTED]:
        launch = launch if launch in counted else counted[0]
        try:
            outcome.lines, outcome.counted = list(list_changed_lines(parent, commit, launch, root)), str(launch)
        except CannotCompareError as error:
            outcome.notes.append(f"the source lines cannot be counted: {error}")
