"""Stored results of a commit, or of another one with the very same package."""

from __future__ import annotations

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
        known = folders.machines(root / "results")
        self.histories = {name: History(name, root, compiler=compilers.named()) for name in known}
        self.commits = sorted({commit for history in self.histories.values() for commit in history.commits()})
        self._packages = packages(self.commits, root)

    def measured(self, history: History, package: str) -> list[str]:
        """Return the commits with a package that a machine has results of, oldest first."""
        return [commit for commit in history.commits() if package and self._packages[commit] == package]

    def exact(self, benchmark: str, params: Mapping[str, str], package: str) -> float | None:
        """Return a counted or compiled number, which is the same on every machine, if today's compiler made it."""
        for history in self.histories.values():
            for commit in self.measured(history, package):
                for results in history.environments(commit).values():
                    noted = str(history.run_of(results, benchmark).get("nvcc", ""))
                    point = _points(history, results, benchmark).get(tuple(params.items()))
                    if noted.endswith(f"V{machine.nvcc_release()}") and point and point.value is not None:
                        return point.value
        return None

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
        if wanted or device:
            return wanted or machine.default_name(device)
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
