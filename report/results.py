"""Reading what is stored under `results/`, through asv's own API."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.results import Results, iter_results_for_machine

from runner import record

#: The project's folder, whichever folder one stands in.
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Point:
    """One configuration's result: its parameters by name, and its value (None: failed or skipped)."""

    params: dict[str, str]
    value: float | None


def machines(config: Any) -> list[str]:
    """The names of the machines that have results where asv's configuration says."""
    return sorted(path.parent.name for path in Path(config.results_dir).glob("*/machine.json"))


class History:
    """The stored results of one machine.

    Parameters
    ----------
    machine : the machine's name.
    root : the folder that holds `asv.conf.json` and `results/`.
    config : asv's configuration, where asv itself is at work and has loaded one; `root` then plays no part.

    Raises
    ------
    FileNotFoundError : there are no results of that machine.
    """

    def __init__(self, machine: str, root: Path = ROOT, *, config: Any = None) -> None:
        if config is None:
            config = Config.load(str(root / "asv.conf.json"))
            config.results_dir = str(root / "results")
        folder = Path(config.results_dir)
        if not (folder / machine / "machine.json").exists():
            known = ", ".join(machines(config)) or "no machine"
            raise FileNotFoundError(f"{folder} holds no results of {machine!r}, only of {known}; run: make bench")
        self.machine = machine
        self._benchmarks = Benchmarks.load(config)
        self._commits: list[Results] = list(iter_results_for_machine(str(folder), machine))
        self._runs = record.read(folder, machine)

    def benchmarks(self, kind: str) -> list[str]:
        """Names of the benchmarks of a kind, "time" or "track"."""
        return [name for name, benchmark in sorted(self._benchmarks.items()) if benchmark["type"] == kind]

    def commit(self, prefix: str) -> Results | None:
        """The results of the commit whose hash begins so, or None."""
        return next((results for results in self._commits if results.commit_hash.startswith(prefix)), None)

    def commits(self) -> list[str]:
        """The hashes of the measured commits, oldest first."""
        dates = {results.commit_hash: results.date for results in self._commits}
        return sorted(dates, key=lambda commit: (dates[commit], commit))

    def all_of(self, commit: str) -> list[Results]:
        """The results of a commit, one for each environment that measured it, in the order of their names."""
        found = [results for results in self._commits if results.commit_hash == commit]
        return sorted(found, key=lambda results: str(results.env_name))

    def axes(self, benchmark: str) -> dict[str, list[str]]:
        """The axes of a benchmark as it is today: the values of each parameter, by its name."""
        described = self._benchmarks[benchmark]
        values = [[text.strip("'") for text in axis] for axis in described["params"]]
        return dict(zip(described["param_names"], values, strict=True))

    def unit(self, benchmark: str) -> str:
        """The unit of a benchmark's values."""
        return str(self._benchmarks[benchmark]["unit"])

    def values(self, results: Results, benchmark: str) -> list[float | None]:
        """One commit's values in the order of today's axes; None where a configuration was not measured then."""
        found = {tuple(point.params.values()): point.value for point in self.points(results, benchmark)}
        return [found.get(combination) for combination in itertools.product(*self.axes(benchmark).values())]

    def newest(self, benchmark: str) -> Results | None:
        """The results of the newest commit that has a value of `benchmark`, or None."""
        measured = [
            results
            for results in self._commits
            if any(point.value is not None for point in self.points(results, benchmark))
        ]
        return max(measured, key=lambda results: results.date, default=None)

    def points(self, results: Results, benchmark: str) -> Iterator[Point]:
        """The configurations of a benchmark on one commit, in the order of its axes; none if it was not run."""
        if benchmark not in results.get_result_keys(self._benchmarks):
            return
        axes = results.get_result_params(benchmark)
        names = self._benchmarks[benchmark]["param_names"]
        for combination, value in zip(itertools.product(*axes), results.get_result_value(benchmark, axes), strict=True):
            params = dict(zip(names, (text.strip("'") for text in combination), strict=True))
            yield Point(params, None if value is None or math.isnan(value) else float(value))

    def value(self, results: Results, benchmark: str, **params: str) -> float | None:
        """The value of one configuration, or None; parameters by name, underscores for blanks."""
        wanted = {name.replace("_", " "): value for name, value in params.items()}
        found = (point.value for point in self.points(results, benchmark) if wanted.items() <= point.params.items())
        return next(found, None)

    def run_of(self, results: Results) -> dict[str, Any]:
        """The record of the last run that measured a commit; empty if none was kept."""
        return next((run for run in reversed(self._runs) if results.commit_hash in run["commits"]), {})
