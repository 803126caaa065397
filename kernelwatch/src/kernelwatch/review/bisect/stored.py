"""Stored results of a commit, or of another one with the very same package."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from asv.results import Results

from kernelwatch.instrument import machine
from kernelwatch.review.bisect.commits import packages
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.store import folders
from kernelwatch.store.results import History, Point
from kernelwatch.toolchain import releases as compilers


class Stored:
    """All results under a project's `results/`, by the hash of the package that they are of.

    Parameters
    ----------
    root : Path
        The folder that holds `asv.conf.json`, `results/` and the repository.
    """

    def __init__(self, root: Path) -> None:
        compiler = compilers.named()
        known = folders.machines(root / "results")
        self.histories = {name: History(name, root, compiler=compiler) for name in known}
        self.commits = sorted({commit for history in self.histories.values() for commit in history.commits()})
        self._commits: dict[str, list[str]] = defaultdict(list)
        for commit, package in packages(self.commits, root).items():
            self._commits[package].append(commit)

    def measured(self, history: History, package: str) -> list[str]:
        """Return the commits with a package that a machine has results of, oldest first."""
        same = self._commits.get(package, []) if package else []
        return [commit for commit in history.commits() if commit in same]

    def exact(self, benchmark: str, params: Mapping[str, str], package: str) -> float | None:
        """Return a counted or compiled number, which is the same on every machine, if today's compiler made it."""
        for history in self.histories.values():
            measured = (history.environments(commit).values() for commit in self.measured(history, package))
            for results in itertools.chain.from_iterable(measured):
                if self._is_of_this_compiler(history, results, benchmark):
                    point = _points(history, results, benchmark).get(tuple(params.items()))
                    if point is not None and point.value is not None:
                        return point.value
        return None

    def _is_of_this_compiler(self, history: History, results: Results, benchmark: str) -> bool:
        noted = history.run_of(results, benchmark).get("nvcc")
        return noted is not None and str(noted).endswith(f"V{machine.nvcc_release()}")

    def machine(self, wanted: str | None, good: str, bad: str) -> str:
        """Return the machine whose times are compared.

        Parameters
        ----------
        wanted : str or None
            What somebody asked for. If nothing: this one if it has a GPU, or else the only one that has results of
            both packages.
        good, bad : str
            Hashes of packages.

        Raises
        ------
        CannotCompareError
            There is none, or there are several.
        """
        device = machine.gpu()
        here = machine.default_name(device) if device else None
        if wanted or here:
            return str(wanted or here)
        both = [
            name
            for name, history in self.histories.items()
            if all(self.measured(history, package) for package in (good, bad)) and not name.startswith(machine.NO_GPU)
        ]
        if len(both) == 1:
            return both[0]
        problem = f"{', '.join(both)} have" if both else "no machine with a GPU has"
        raise CannotCompareError(f"{problem} times of both commits: choose a machine (--machine), or search on one")


@cache
def _points(history: History, results: Results, benchmark: str) -> dict[tuple[tuple[str, str], ...], Point]:
    return {tuple(point.params.items()): point for point in history.points(results, benchmark)}
