"""Reading asv's stored results through asv's own API."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.results import Results, iter_results_for_machine
from asv.util import UserError

#: The configuration of asv that the working directory holds.
CONFIG = "asv.conf.json"


@dataclass(frozen=True)
class Point:
    """One configuration's result: its parameters by name, and its value (None: failed, NaN: skipped)."""

    params: dict[str, str]
    value: float | None

    @property
    def skipped(self) -> bool:
        """Whether the configuration was skipped."""
        return self.value is not None and math.isnan(self.value)


class History:
    """The results of one machine, newest commit first.

    Parameters
    ----------
    results_dir : asv's folder of results.
    machine : the machine's name.

    Raises
    ------
    FileNotFoundError : there are no results of that machine.
    """

    def __init__(self, results_dir: str | Path, machine: str) -> None:
        self.results_dir = Path(results_dir)
        self.machine = machine
        if not (self.results_dir / machine / "machine.json").exists():
            known = ", ".join(sorted(path.parent.name for path in self.results_dir.glob("*/machine.json")))
            raise FileNotFoundError(
                f"no results of machine {machine!r} in {self.results_dir}; there are results of {known or 'none'}; "
                "run: make bench"
            )
        found = iter_results_for_machine(str(self.results_dir), machine)
        self.commits: list[Results] = sorted(found, key=lambda results: results.date, reverse=True)

    def newest(self, benchmark: str) -> Results | None:
        """The newest commit with any value of `benchmark`, or None."""
        for results in self.commits:
            if any(point.value is not None and not point.skipped for point in points(results, benchmark)):
                return results
        return None


def points(results: Results, benchmark: str) -> Iterator[Point]:
    """The configurations of a benchmark on one commit, in the order of its axes; none if it was not run.

    Parameters' names come from `benchmarks.json`, their values from the results, unquoted.
    """
    if benchmark not in results.get_all_result_keys():
        return
    axes = results.get_result_params(benchmark)
    values = results.get_result_value(benchmark, axes)
    names = _parameter_names(benchmark)
    for combination, value in zip(itertools.product(*axes), values, strict=True):
        yield Point(dict(zip(names, (text.strip("'") for text in combination), strict=True)), value)


def _parameter_names(benchmark: str) -> list[str]:
    names: list[str] = benchmarks()[benchmark]["param_names"]
    return names


def benchmarks() -> Benchmarks:
    """The benchmarks that asv knows of, by name.

    Raises
    ------
    FileNotFoundError : asv has not run here yet.
    """
    try:
        return Benchmarks.load(Config.load(CONFIG))
    except UserError as error:
        raise FileNotFoundError(f"{error}; run: make bench") from None
