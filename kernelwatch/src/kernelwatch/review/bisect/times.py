"""Times of commits: as stored, or measured in turns on this machine's GPU, which makes them local results."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch import mortal, suite
from kernelwatch.instrument import machine
from kernelwatch.review.bisect.commits import Commit, packages
from kernelwatch.review.bisect.metric import Configuration
from kernelwatch.review.commits import CannotCompareError, sides
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.rows import Row
from kernelwatch.store import folders
from kernelwatch.store.results import History
from kernelwatch.toolchain import releases as compilers

#: The architecture whose machine code is compared where the number is of none.
ARCH = "sm_90"


class Times:
    """The review of a machine's times of any two commits. One without results has those of the very same package."""

    def __init__(self, root: Path) -> None:
        self._root, device = root, machine.gpu()
        self._here = machine.default_name(device) if device else ""
        self.machine = self._here
        #: That of the GPU that timed what was compared, or else of this machine's.
        self.arch = device.arch if device else ARCH
        self._read()

    def _read(self) -> None:
        names = folders.machines(folders.results(self._root / "results"))
        self._stored = {name: History(name, self._root, compiler=compilers.named()) for name in names}
        #: All that have results of any machine.
        self.commits = sorted({commit for history in self._stored.values() for commit in history.commits()})
        self._packages = packages(self.commits, self._root)
        self._known: dict[tuple[str, str], Comparison] = {}

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

    def stored(self, wanted: Commit, name: str = "") -> list[str]:
        """Return the commits with the same package that the machine, or another, has results of: itself first."""
        history = self._stored.get(name or self.machine)
        measured = history.commits() if history and wanted.package else []
        same = [commit for commit in measured if self._packages[commit] == wanted.package]
        return sorted(same, key=lambda commit: commit != wanted.hash)

    def rows(self, base: Commit, head: Commit, wanted: Sequence[Configuration]) -> list[Row]:
        """Return the review's row of each configuration that both commits have a time of."""
        known: dict[str, Row] = {}
        for pair in itertools.product(self.stored(base), self.stored(head)):
            if len(known) < len(wanted):
                found = {row.name: row for row in self._compared(*pair).rows}
                known = {each.name: found[each.name] for each in wanted if each.name in found} | known
        return list(known.values())

    def _compared(self, base: str, head: str) -> Comparison:
        if (base, head) not in self._known:
            found = compare(sides(self._stored[self.machine], (base, head), [base, head])[-1], self._root)
            self._known[base, head], self.arch = found, found.arch or self.arch
        return self._known[base, head]

    def measure(self, commits: Sequence[Commit], wanted: Sequence[Configuration]) -> None:
        """Time configurations of commits in turns, as `kernelwatch measure` does; asv prints to standard error."""
        hashes = [commit.hash for commit in commits]
        environment = os.environ | {mortal.RUN: str(os.getpid())}
        subprocess.run(
            command(wanted), cwd=self._root, env=environment, input="\n".join(hashes) + "\n", stdout=sys.stderr,
            text=True, check=False,
        )  # fmt: skip
        self._read()


def command(wanted: Sequence[Configuration]) -> list[str]:
    """Return asv's command that measures configurations, and the copies beside them, of the commits that it is told."""
    selected = []
    for each in wanted:
        params = ", ".join(f"'?{re.escape(value)}'?" for value in each.params.values())
        for benchmark in (each.benchmark, suite.control(each.benchmark)):
            selected += ["--bench", rf"^{re.escape(benchmark)}\({params}\)$"]
    more = ["--interleave-rounds", "--record-samples", *selected]
    return [sys.executable, "-m", "asv", "run", *more, "HASHFILE:-"]
