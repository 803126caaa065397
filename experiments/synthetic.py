"""A project whose history nobody measured: as many commits and series as asked for, for publishing."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.util import write_json
from numpy.typing import NDArray

from report.results import ROOT

MACHINE = "synthetic"

ENVIRONMENT = "virtualenv-py3"

#: A day between commits, in asv's milliseconds.
DAY = 86_400_000

#: asv's dates are commits' dates; the first is 2020-01-01.
FIRST = 1_577_836_800_000

#: Relative noise of a median; how many commits change kernels, which share of the series steps there, and how far.
NOISE, CHANGES, SHARE, STEP = 0.002, 20, 0.25, 0.05


def history(repo: Path, commits: int) -> list[str]:
    """Make a git repository with a line of empty commits; their hashes, oldest first."""
    stream = "".join(
        f"commit refs/heads/main\ncommitter nobody <nobody@localhost> {(FIRST + DAY * index) // 1000} +0000\ndata 0\n\n"
        for index in range(commits)
    )
    for words, text in ((["init", "--quiet", "--initial-branch=main"], ""), (["fast-import", "--quiet"], stream)):
        subprocess.run(["git", *words], cwd=repo, input=text, text=True, check=True)
    listed = ["git", "rev-list", "--reverse", "main"]
    return subprocess.run(listed, cwd=repo, capture_output=True, text=True, check=True).stdout.split()


def results(folder: Path, commits: list[str], series: int, samples: int, seed: int = 0) -> None:
    """Write what a machine that measured every commit would have stored.

    Parameters
    ----------
    folder : asv's `results/`, to be made.
    commits : oldest first.
    series : configurations of the suite's own timed benchmarks, the transposes first.
    samples : recorded samples of each configuration on each commit.

    Raises
    ------
    ValueError : the suite has fewer timed configurations than `series`.
    """
    described = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    described.pop("version")
    chosen, left = {}, series
    for name, benchmark in sorted(described.items(), reverse=True):  # transposes first
        if benchmark["type"] == "time" and left > 0:
            chosen[name] = min(left, math.prod(len(axis) for axis in benchmark["params"]))
            left -= chosen[name]
    if left > 0:
        raise ValueError(f"the suite has {series - left} timed configurations; given: {series}")
    write_json(str(folder / MACHINE / "machine.json"), {"machine": MACHINE, "version": 1})
    write_json(str(folder / "benchmarks.json"), {name: described[name] for name in chosen}, Benchmarks.api_version)
    random = np.random.default_rng(seed)
    times = {name: _times(len(commits), count, random) for name, count in chosen.items()}
    for index, commit in enumerate(commits):
        columns = ["result", "params", "version", "stats_ci_99_a", "stats_ci_99_b", "stats_repeat", "samples"]
        rows = {name: _row(described[name], values[index], samples, random) for name, values in times.items()}
        stored = {
            "commit_hash": commit,
            "env_name": ENVIRONMENT,
            "date": FIRST + DAY * index,
            "params": {"machine": MACHINE, "python": "3"},
            "python": "3",
            "requirements": {},
            "env_vars": {},
            "result_columns": columns,
            "results": rows,
            "durations": {},
        }
        path = folder / MACHINE / f"{commit[:8]}-{ENVIRONMENT}.json"
        write_json(str(path), stored, Results.api_version, compact=True)


def _times(commits: int, series: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Seconds by commit and series: steps where a commit changed their kernel, with noise."""
    steps = np.zeros((commits, series))
    for row in random.integers(commits, size=CHANGES):
        steps[row] = random.choice([-STEP, STEP], series) * (random.random(series) < SHARE)
    start = 10 ** random.uniform(-5.5, -2.5, series)
    return start * np.exp(np.cumsum(steps, axis=0)) * (1 + random.normal(0, NOISE, (commits, series)))


def _row(
    benchmark: dict[str, Any], values: NDArray[np.float64], samples: int, random: np.random.Generator
) -> list[Any]:
    """One benchmark of one commit, in the order of the columns; configurations beyond `values` have none."""
    missing = [None] * (math.prod(len(axis) for axis in benchmark["params"]) - len(values))
    scatter = values[:, None] * (1 + random.normal(0, NOISE, (len(values), samples)))
    low, high = values * (1 - NOISE), values * (1 + NOISE)
    filled: list[list[Any]] = [values.tolist(), low.tolist(), high.tolist(), [samples] * len(values), scatter.tolist()]
    result, lows, highs, repeats, kept = (column + missing for column in filled)
    return [result, benchmark["params"], benchmark["version"], lows, highs, repeats, kept]
