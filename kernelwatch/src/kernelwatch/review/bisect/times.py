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
from kernelwatch.review.bisect.judging import Source, Step, side
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
        self.machine, self._root, self._scratch = name, root, scratch
        self._stored = stored
        self._history = stored.histories.get(name)
        #: What was measured here, the newest last.
        self._measured: list[History] = []
        self._known: dict[tuple[str, str, Path], Comparison] = {}
        device = machine.gpu()
        #: Whether this is a GPU of the kind that the times are of.
        self.can_measure = device is not None and machine.default_name(device) == name

    def stored_commit(self, commit: Commit) -> str | None:
        """Return a commit with the same package that the machine has results of."""
        if self._history is None:
            return None
        found = self._stored.measured(self._history, commit.package)
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
            found = sides(history, (base, head), [base, head])
            self._known[key] = compare(found, self._root)
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
        return next(filter(None, known), device.arch if device else "sm_90")

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
        subprocess.run(
            command(wanted),
            cwd=self._root,
            env=os.environ | {RESULTS: str(folder), IN_TURNS: " ".join(hashes)},
            input="\n".join(hashes) + "\n",
            stdout=sys.stderr,
            text=True,
            check=False,
        )
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
        self._configuration, self._reviews, self._root = configuration, reviews, root
        self._commits, self._good, self._bad = commits, commits[0], commits[-1]
        self.arch = reviews.arch(self._good, self._bad)
        #: Package -> what its launch gives the GPU, or why that is not known.
        self._launched: dict[str, str] = {}
        #: What was decided of a launch.
        self._sides: dict[str, tuple[bool, Commit]] = {}
        self._sides[self.launched(self._bad)] = True, self._bad
        self._sides[self.launched(self._good)] = False, self._good

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
        """Return the review's row. Where one has no time, that of a stored commit with the same machine code does."""
        direct = self._rows(base, head)
        if direct:
            return direct[0]
        others = self._same_code(base), self._same_code(head)
        return next(iter(self._rows(*others)), None) if all(others) else None

    def _rows(self, base: Commit | None, head: Commit | None) -> list[Row]:
        return self._reviews.rows(base, head, [self._configuration]) if base and head else []

    def _same_code(self, commit: Commit) -> Commit | None:
        """Return a stored commit of the range that launches the same: itself, good or bad if they do."""
        wanted = self.launched(commit)
        for each in (commit, self._good, self._bad, *self._commits):
            if self._reviews.stored_commit(each) and self._builds(each) and self.launched(each) == wanted:
                return each
        return None

    def _builds(self, commit: Commit) -> bool:
        try:
            return bool(self.launched(commit))
        except probe.PackageError:
            return False

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""
        try:
            launched = self.launched(commit)
        except probe.PackageError as error:
            return Step(commit, None, Source.SKIPPED, reason=str(error))
        if launched in self._sides:
            is_bad, same = self._sides[launched]
            return Step(commit, is_bad, Source.SAME_CODE, reason=f"as {same.hash[:8]}")
        found = self._decided(commit, Source.STORED)
        if found.is_bad is None and self._reviews.can_measure:
            self._reviews.measure([self._good, commit, self._bad], [self._configuration])
            found = self._decided(commit, Source.MEASURED)
        if found.is_bad is not None:
            self._sides[launched] = found.is_bad, commit
        return found

    def _decided(self, commit: Commit, source: Source) -> Step:
        from_good, to_bad = self.row(self._good, commit), self.row(commit, self._bad)
        if from_good is None or to_bad is None:
            why = "it was not timed" if self._reviews.can_measure else "not timed yet, and there is no such GPU here"
            return Step(commit, None, Source.SKIPPED, reason=why)
        is_bad = side(from_good, to_bad)
        if is_bad is None:
            reasons = (row.judgement.reason for row in (from_good, to_bad))
            why = "; ".join(filter(None, reasons)) or "the same as both"
            return Step(commit, None, Source.SKIPPED, from_good.head, why)
        return Step(commit, is_bad, source, from_good.head)

    def confirmed(self, parent: Commit, culprit: Commit) -> Row | None:
        """Return the review's row of the two, measured here if it is not known."""
        if self.row(parent, culprit) is None and self._reviews.can_measure:
            self._reviews.measure([parent, culprit], [self._configuration])
        return self.row(parent, culprit)
