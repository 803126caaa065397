"""Times of commits: as stored, or measured in turns on this machine's GPU."""

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
from kernelwatch.review.bisect.commits import Commit, packages
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.rows import Row
from kernelwatch.store import folders
from kernelwatch.store.folders import RESULTS
from kernelwatch.store.noise import FILE
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers

#: The architecture whose machine code is compared where the number is of none.
ARCH = "sm_90"


class Times:
    """The review of a machine's times of any two commits; what is measured goes to a folder of its own.

    A commit without results has those of the oldest with the very same package.
    """

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root, self._scratch = root, scratch
        known = folders.machines(root / "results")
        self._stored = {name: History(name, root, compiler=compilers.named()) for name in known}
        #: All that have results of any machine.
        self.commits = sorted({commit for history in self._stored.values() for commit in history.commits()})
        self._packages = packages(self.commits, root)
        #: What was measured here, the newest last.
        self._measured: list[History] = []
        self._known: dict[tuple[str, str, Path], Comparison] = {}
        self._device = machine.gpu()
        self._here = machine.default_name(self._device) if self._device else ""
        self.machine = self._here

    def choose(self, wanted: str | None, good: Commit, bad: Commit) -> None:
        """Choose the machine whose times are compared: as wanted; this one if it has a GPU; the only one with both.

        Raises
        ------
        CannotCompareError
            There is none, or there are several.
        """
        with_gpu = (name for name in self._stored if not name.startswith(machine.NO_GPU))
        both = [name for name in with_gpu if self.stored(good, name) and self.stored(bad, name)]
        if not (wanted or self._here or len(both) == 1):
            problem = f"{', '.join(both)} have" if both else "no machine with a GPU has"
            raise CannotCompareError(f"{problem} times of both commits: choose a machine (--machine), or search on one")
        self.machine = wanted or self._here or both[0]

    @property
    def can_measure(self) -> bool:
        """Whether this is a GPU of the kind that the times are of."""
        return bool(self._here) and self.machine == self._here

    @property
    def arch(self) -> str:
        """The architecture of the GPU that timed what was compared, or else of this machine's."""
        known = (comparison.arch for comparison in self._known.values())
        return next(filter(None, known), self._device.arch if self._device else ARCH)

    def stored(self, wanted: Commit, name: str = "") -> str | None:
        """Return a commit with the same package that the machine, or another, has results of: itself if it has."""
        history = self._stored.get(name or self.machine)
        measured = history.commits() if history and wanted.package else []
        same = [commit for commit in measured if self._packages[commit] == wanted.package]
        return wanted.hash if wanted.hash in same else next(iter(same), None)

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> list[Row]:
        """Return the review's row of each configuration: by what was measured last in turns, else by what is stored."""
        found = [(each, base.hash, head.hash) for each in self._measured]
        found = [each for each in found if {*each[1:]} <= {*each[0].commits()}]
        if (one := self.stored(base)) and (other := self.stored(head)):
            found.insert(0, (self._stored[self.machine], one, other))
        known = {row.name: row for each in found for row in self._compared(*each).rows}
        return [known[each.name] for each in wanted if each.name in known]

    def _compared(self, history: History, base: str, head: str) -> Comparison:
        key = base, head, history.folder
        if key not in self._known:
            self._known[key] = compare(sides(history, (base, head), [base, head]), self._root)
        return self._known[key]

    def measure(self, commits: Sequence[Commit], wanted: Sequence[Configuration]) -> None:
        """Time configurations of commits in turns, as `kernelwatch measure` does; asv prints to standard error."""
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
