"""Times of commits: as stored, by equal machine code, or measured in turns on this machine's GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from asv.config import Config

from kernelwatch import suite
from kernelwatch.instrument import machine
from kernelwatch.instrument.companions import IN_TURNS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit, packages
from kernelwatch.review.bisect.exact import ARCH
from kernelwatch.review.bisect.judging import MEASURED, SAME_CODE, SKIPPED, STORED, Step, side
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.rows import Row
from kernelwatch.store import folders
from kernelwatch.store.folders import RESULTS
from kernelwatch.store.noise import FILE
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers


class Stored:
    """All results under a project's `results/`, by the package that they are of."""

    def __init__(self, root: Path) -> None:
        known = folders.machines(root / "results")
        self.histories = {name: History(name, root, compiler=compilers.named()) for name in known}
        self.commits = sorted({commit for history in self.histories.values() for commit in history.commits()})
        self._packages = packages(self.commits, root)

    def commit(self, name: str, wanted: Commit) -> str | None:
        """Return a commit with the same package that a machine has results of: itself, or the oldest."""
        history = self.histories.get(name)
        measured = history.commits() if history and wanted.package else []
        same = [commit for commit in measured if self._packages[commit] == wanted.package]
        return wanted.hash if wanted.hash in same else next(iter(same), None)

    def machine(self, wanted: str | None, good: Commit, bad: Commit) -> str:
        """Return the machine whose times are compared: as asked for; this one if it has a GPU; the only one with both.

        Raises
        ------
        CannotCompareError
            There is none, or there are several.
        """
        device = machine.gpu()
        if wanted or device:
            return wanted or machine.default_name(device)
        with_gpu = (name for name in self.histories if not name.startswith(machine.NO_GPU))
        both = [name for name in with_gpu if self.commit(name, good) and self.commit(name, bad)]
        if len(both) == 1:
            return both[0]
        problem = f"{', '.join(both)} have" if both else "no machine with a GPU has"
        raise CannotCompareError(f"{problem} times of both commits: choose a machine (--machine), or search on one")


class Reviews:
    """The review of a machine's times of any two commits; what is measured goes to a folder of its own."""

    def __init__(self, name: str, root: Path, stored: Stored, scratch: Path) -> None:
        self.machine, self._root, self._stored, self._scratch = name, root, stored, scratch
        #: What was measured here, the newest last.
        self._measured: list[History] = []
        self._known: dict[tuple[str, str, Path], Comparison] = {}
        device = machine.gpu()
        #: Whether this is a GPU of the kind that the times are of.
        self.can_measure = device is not None and machine.default_name(device) == name

    def stored_commit(self, commit: Commit) -> str | None:
        """Return a commit with the same package that the machine has results of."""
        return self._stored.commit(self.machine, commit)

    def comparisons(self, base: Commit, head: Commit) -> list[Comparison]:
        """Return the review of two commits from what was measured in turns, newest first, then from what is stored."""
        found = [(history, base.hash, head.hash) for history in reversed(self._measured)]
        found = [each for each in found if set(each[1:]) <= set(each[0].commits())]
        one, other = self.stored_commit(base), self.stored_commit(head)
        if one and other:
            found.append((self._stored.histories[self.machine], one, other))
        return [self._comparison(*each) for each in found]

    def _comparison(self, history: History, base: str, head: str) -> Comparison:
        key = base, head, history.folder
        if key not in self._known:
            self._known[key] = compare(sides(history, (base, head), [base, head]), self._root)
        return self._known[key]

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> list[Row]:
        """Return the review's row of each configuration that some review of two commits has."""
        found = {row.name: row for each in reversed(self.comparisons(base, head)) for row in each.rows}
        return [found[each.name] for each in wanted if each.name in found]

    def arch(self, good: Commit, bad: Commit) -> str:
        """Return the architecture of the GPU that timed two commits, or else of this machine's."""
        device = machine.gpu()
        known = (comparison.arch for comparison in self.comparisons(good, bad))
        return next(filter(None, known), device.arch if device else ARCH)

    def measure(self, commits: Sequence[Commit], wanted: Sequence[Configuration]) -> None:
        """Time configurations of commits in turns, as `make measure` does; what asv prints goes to standard error."""
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
    """Judges commits, from the good to the bad one, by one time."""

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
        if commit.package not in self._launched:
            asked = self._configuration.benchmark, dict(self._configuration.params), self.arch
            self._launched[commit.package] = probe.ask(commit, "launched", asked, self._root)
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
        if verdict == "skip":
            doubts = "; ".join(filter(None, (row.judgement.reason for row in (from_good, to_bad))))
            return Step(commit.hash, verdict, SKIPPED, from_good.head, doubts or "the same as both")
        return Step(commit.hash, verdict, source, from_good.head)
