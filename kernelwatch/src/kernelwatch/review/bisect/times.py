"""Times of commits: as stored, by equal machine code, or measured in turns on this machine's GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from asv.config import Config

from kernelwatch.asv import suite
from kernelwatch.instrument import machine
from kernelwatch.instrument.companions import IN_TURNS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.exact import ARCH
from kernelwatch.review.bisect.judging import MEASURED, SAME_CODE, SKIPPED, STORED, Step, side
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.bisect.stored import Stored
from kernelwatch.review.commits import sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.rows import Row
from kernelwatch.store import folders
from kernelwatch.store.folders import RESULTS
from kernelwatch.store.noise import FILE
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers


class Reviews:
    """The review of the times of any two commits.

    Parameters
    ----------
    name : str
        The machine.
    root : Path
        The repository.
    stored : Stored
        Its results.
    scratch : Path
        A folder for what is measured; `results/` is only read.
    """

    def __init__(self, name: str, root: Path, stored: Stored, scratch: Path) -> None:
        self.machine, self._root, self._stored, self._scratch = name, root, stored, scratch
        self._history = stored.histories.get(name)
        #: What was measured here, the newest last.
        self._measured: list[History] = []
        self._known: dict[tuple[str, str, Path], Comparison] = {}
        device = machine.gpu()
        #: Whether this is a GPU of the kind that the times are of.
        self.can_measure = device is not None and machine.default_name(device) == name

    def stored_commit(self, commit: Commit) -> str | None:
        """Return a commit with the same package that the machine has results of."""
        found = self._stored.measured(self._history, commit.package) if self._history else []
        return commit.hash if commit.hash in found else next(iter(found), None)

    def comparisons(self, base: Commit, head: Commit) -> Iterator[Comparison]:
        """Yield the review of two commits from what was measured in turns, newest first, then from what is stored."""
        for history in reversed(self._measured):
            if {base.hash, head.hash} <= set(history.commits()):
                yield self._comparison(history, base.hash, head.hash)
        one, other = self.stored_commit(base), self.stored_commit(head)
        if self._history is not None and one and other:
            yield self._comparison(self._history, one, other)

    def _comparison(self, history: History, base: str, head: str) -> Comparison:
        key = base, head, history.folder
        if key not in self._known:
            self._known[key] = compare(sides(history, (base, head), [base, head]), self._root)
        return self._known[key]

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> list[Row]:
        """Return the review's row of each configuration that some review of two commits has."""
        found: dict[str, Row] = {}
        for comparison in self.comparisons(base, head):
            found = {row.name: row for row in comparison.rows} | found
        return [found[each.name] for each in wanted if each.name in found]

    def arch(self, good: Commit, bad: Commit) -> str:
        """Return the architecture of the GPU that timed two commits, or else of this machine's."""
        device = machine.gpu()
        known = (comparison.arch for comparison in self.comparisons(good, bad))
        return next(filter(None, known), device.arch if device else ARCH)

    def measure(self, commits: Sequence[Commit], wanted: Sequence[Configuration]) -> None:
        """Time configurations of commits in turns, as `make measure` does, into a folder of its own.

        What asv prints goes to standard error, where it says what fails.
        """
        folder = self._scratch / str(len(self._measured))
        places = [place / self.machine / FILE for place in folders.places(self._root / "results")]
        if thresholds := [path.read_bytes() for path in places if path.exists()]:
            (folder / self.machine).mkdir(parents=True)
            (folder / self.machine / FILE).write_bytes(b"".join(thresholds))  # of two lines the later counts
        hashes = [commit.hash for commit in commits]
        environment = os.environ | {RESULTS: str(folder), IN_TURNS: " ".join(hashes)}
        subprocess.run(
            command(wanted), cwd=self._root, env=environment, input="\n".join(hashes) + "\n", stdout=sys.stderr,
            text=True, check=False,
        )  # fmt: skip
        if (folder / self.machine / "machine.json").exists():
            config = Config.load(str(self._root / "asv.conf.json"))
            config.results_dir = str(folder)
            self._measured.append(History(self.machine, config=config, compiler=compilers.named()))


def command(wanted: Sequence[Configuration]) -> list[str]:
    """Return asv's command that measures configurations, and the copies beside them, of the commits that it is told."""
    selected = []
    for each in wanted:
        params = ", ".join(f"'?{re.escape(value)}'?" for value in each.params.values())
        for benchmark in (each.benchmark, suite.control(each.benchmark)):
            selected += ["--bench", rf"^{re.escape(benchmark)}\({params}\)$"]
    more = ["--interleave-rounds", "--record-samples", *selected]
    return [sys.executable, "-m", "asv", "run", *more, "HASHFILE:-"]


class Timed:
    """Judges commits by one time.

    Parameters
    ----------
    configuration : Configuration
        The time.
    reviews : Reviews
        Of any two commits.
    commits : sequence of Commit
        From the good to the bad one.
    root : Path
        The repository.
    """

    def __init__(self, configuration: Configuration, reviews: Reviews, commits: Sequence[Commit], root: Path) -> None:
        self._configuration, self._reviews, self._commits, self._root = configuration, reviews, commits, root
        self._good, self._bad = commits[0], commits[-1]
        self.arch = reviews.arch(self._good, self._bad)
        #: Package -> what its launch gives the GPU.
        self._launched: dict[str, str] = {}
        #: A launch -> the verdict, and the commit that it was decided on.
        self._sides = {self.launched(self._bad): ("bad", self._bad), self.launched(self._good): ("good", self._good)}

    def launched(self, commit: Commit) -> str:
        """Return a digest of the machine code, geometry and arguments of the commit's launch.

        Raises
        ------
        PackageError
            The commit does not build, or lacks the kernel.
        """
        if not commit.package:
            raise probe.PackageError("it has no gpu_kernels")
        if commit.package not in self._launched:
            asked = self._configuration.benchmark, dict(self._configuration.params), self.arch
            self._launched[commit.package] = probe.ask(commit.hash, "launched", asked, self._root)
        return self._launched[commit.package]

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row, measured if it is not known and a GPU is here."""
        if self._known(base, head) is None and self._reviews.can_measure:
            self._reviews.measure([base, head], [self._configuration])
        return self._known(base, head)

    def _known(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row. Where one has no time, that of a stored commit with the same machine code does."""
        direct = self._reviews.rows(base, head, [self._configuration])
        if not direct:
            one, other = self._same_code(base), self._same_code(head)
            direct = self._reviews.rows(one, other, [self._configuration]) if one and other else []
        return next(iter(direct), None)

    def _same_code(self, commit: Commit) -> Commit | None:
        """Return a stored commit of the range that launches the same: itself, good or bad if they do."""
        wanted = self.launched(commit)
        every = (commit, self._good, self._bad, *self._commits)
        return next((each for each in every if self._reviews.stored_commit(each) and self._is(each, wanted)), None)

    def _is(self, commit: Commit, wanted: str) -> bool:
        try:
            return self.launched(commit) == wanted
        except probe.PackageError:
            return False

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        try:
            launched = self.launched(commit)
        except probe.PackageError as error:
            return Step(commit.hash, "skip", SKIPPED, reason=str(error))
        if launched in self._sides:
            verdict, same = self._sides[launched]
            return Step(commit.hash, verdict, SAME_CODE, reason=f"as {same.hash[:8]}")
        found = self._decided(commit, STORED)
        if found.verdict == "skip" and self._reviews.can_measure:
            self._reviews.measure([self._good, commit, self._bad], [self._configuration])
            found = self._decided(commit, MEASURED)
        if found.verdict != "skip":
            self._sides[launched] = found.verdict, commit
        return found

    def _decided(self, commit: Commit, source: str) -> Step:
        from_good, to_bad = self._known(self._good, commit), self._known(commit, self._bad)
        if from_good is None or to_bad is None:
            why = "it was not timed" if self._reviews.can_measure else "not timed yet, and there is no such GPU here"
            return Step(commit.hash, "skip", SKIPPED, reason=why)
        verdict = side(from_good, to_bad)
        doubts = "; ".join(filter(None, (row.judgement.reason for row in (from_good, to_bad))))
        if verdict == "skip":
            return Step(commit.hash, verdict, SKIPPED, from_good.head, doubts or "the same as both")
        return Step(commit.hash, verdict, source, from_good.head)
