"""The numbers of commits for a search: stored ones, or numbers that the runner measures into a temporary folder."""

import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelwatch.instrument import machine, parent_death
from kernelwatch.review.commit_review import Review
from kernelwatch.store.folders import RESULTS
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import Kind, copy_ratio_name
from kernelwatch.toolchain import releases
from kernelwatch.workflow.bisect.metric import SuiteConfiguration
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import CannotCompareError, load_histories, select_commits
from ptxcount.util.environment import set_variables


@dataclass(frozen=True)
class CommitNumbers:
    """The numbers of the commits of the repository `root`.

    If `is_stored`, only stored times are used: those of `machine`, or of any machine if it is None. Otherwise the
    runner measures times, interleaved if of several commits, and other numbers unless `machine` has stored all of them.
    """

    root: Path
    machine: str | None
    is_stored: bool

    def review_commits(self, base: str, head: str, configurations: Sequence[SuiteConfiguration]) -> Review:
        """Return the review of two commits for some configurations.

        Raises CannotCompareError if the commits have no number in common, or several machines have numbers of both
        commits.
        """
        with self._provide_numbers([base, head], configurations) as machine_name:
            names = {configuration.name for configuration in configurations}
            selections = select_commits(base, head, machine_name, self.root)
            reviews = [review_selection(selection, self.root, names) for selection in selections]
            with_rows = [review for review in reviews if review.rows]
            if not with_rows:
                # The configurations are measured together: one tells which commits lack them.
                problem = _explain_gap(
                    (base, head), configurations[0], load_histories(machine_name, self.root), reviews
                )
                raise CannotCompareError(problem)
        machines = sorted({review.machine for review in with_rows})
        if len(machines) > 1:
            listed = ", ".join(machines)
            raise CannotCompareError(
                f"several machines have numbers of both commits: {listed}; choose one, --machine NAME"
            )
        return with_rows[-1]  # of several environments of asv, the last by name

    def find_value(self, commit: str, configuration: SuiteConfiguration) -> float | None:
        """Return the number of a configuration at a commit; None if there is none.

        Raises CannotCompareError if no machine has results, or several have and `machine` is None.
        """
        with self._provide_numbers([commit], [configuration]) as machine_name:
            history, *others = load_histories(machine_name, self.root)
            if others:
                listed = ", ".join(other.machine for other in (history, *others))
                raise CannotCompareError(f"several machines have results: {listed}; choose one, --machine NAME")
            return _read_value(history, commit, configuration)

    @contextmanager
    def _provide_numbers(
        self, commits: Sequence[str], configurations: Sequence[SuiteConfiguration]
    ) -> Iterator[str | None]:
        """Yield the machine to read numbers from; None for any machine in the folder of results.

        Within the `with` block, the environment variable RESULTS selects the folder: the project's if it has the
        numbers, else the folder into which the runner measured them.
        """
        if self.is_stored:
            yield self.machine
            return
        with set_variables({RESULTS: ""}):
            if self._has_all(commits, configurations):
                yield self.machine
                return
        self._measure(commits, configurations)
        yield None

    def _has_all(self, commits: Sequence[str], configurations: Sequence[SuiteConfiguration]) -> bool:
        """Return whether the machine has stored all numbers with this compiler; False for times, which are measured."""
        if any(configuration.kind is Kind.TIMED for configuration in configurations):
            return False
        try:
            (history,) = load_histories(self.machine, self.root)
        except CannotCompareError:
            return False
        numbers = (_read_value(history, *pair) for pair in itertools.product(commits, configurations))
        return history.compiler == releases.installed_release() and None not in numbers

    def _measure(self, commits: Sequence[str], configurations: Sequence[SuiteConfiguration]) -> None:
        selected = (word for pattern in format_patterns(configurations) for word in ("--bench", pattern))
        words = ["run", "--interleave-rounds", "--record-samples", *selected, "HASHFILE:-"]
        subprocess.run(
            [sys.executable, "-m", "asv", *words],
            cwd=self.root,
            env={**os.environ, parent_death.RUN: str(os.getpid())},
            input="\n".join(commits),
            stdout=2,
            text=True,
            check=False,
        )


def _explain_gap(
    ends: Sequence[str], configuration: SuiteConfiguration, histories: Sequence[History], reviews: Sequence[Review]
) -> str:
    """Return why two commits have no number of a configuration in common, and the command that measures it."""
    lacking = [
        commit[:8]
        for commit in ends
        if all(_read_value(history, commit, configuration) is None for history in histories)
    ]
    gap = f"missing at {' and '.join(lacking)}" if lacking else "both have numbers, but of different configurations"
    unpaired = itertools.chain.from_iterable(group for review in reviews for group in review.unpaired.values())
    reason = next((f": {member.reason}" for member in unpaired), "")
    short_ends = [commit[:8] for commit in ends]
    run = f"asv run --record-samples --bench {configuration.benchmark}"
    runs = " and ".join(f"{run} {commit}^!" for commit in lacking or short_ends)
    return f"{' and '.join(short_ends)} have no common number of {configuration.name}: {gap}{reason}; run: {runs}"


def _read_value(history: History, commit: str, configuration: SuiteConfiguration) -> float | None:
    results = history.find_commit(commit)
    for point in history.iter_points(results, configuration.benchmark) if results else ():
        if point.format_name(configuration.benchmark) == configuration.name:
            return point.value
    return None


def judge_value(value: float | None, good: float, bad: float) -> Literal["good", "bad", "skip"]:
    """Return git bisect's verdict: "bad" if a value is nearer to that of BAD, "skip" without a value."""
    if value is None:
        return "skip"
    return "bad" if abs(value - good) > abs(value - bad) else "good"


def format_patterns(configurations: Sequence[SuiteConfiguration]) -> list[str]:
    """Return regular expressions for `--bench` of asv that select the configurations and the copy ratios of times."""
    by_benchmark = defaultdict(list)
    for configuration in configurations:
        values = ", ".join(f"'?{re.escape(value)}'?" for value in configuration.params.values())
        by_benchmark[configuration.benchmark].append(values)
        if configuration.kind is Kind.TIMED:
            by_benchmark[copy_ratio_name(configuration.benchmark)].append(values)
    return [rf"^{re.escape(name)}\(({'|'.join(alternatives)})\)$" for name, alternatives in by_benchmark.items()]


@contextmanager
def open_numbers(configurations: Sequence[SuiteConfiguration], name: str | None, root: Path) -> Iterator[CommitNumbers]:
    """Yield the numbers of commits for some configurations.

    Numbers are measured into the folder KERNELWATCH_RESULTS, by default a temporary one. But if this machine has no
    GPU, or `name` is another machine, times are the stored ones. Raises CannotCompareError if the configurations
    include both times and other numbers.
    """
    timed = {configuration.kind is Kind.TIMED for configuration in configurations}
    if len(timed) > 1:
        raise CannotCompareError("METRIC matches times and other numbers; add one of the words time, counted, compiled")
    device = machine.find_gpu()
    own_name = machine.default_name(device)
    is_stored = timed == {True} and (device is None or name not in (None, own_name))
    with ExitStack() as closing:
        if not is_stored and RESULTS not in os.environ:
            folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="bisect-"))
            closing.enter_context(set_variables({RESULTS: folder}))
        yield CommitNumbers(root, name if is_stored else name or own_name, is_stored)
