"""What another kind of GPU changes: the times of one commit on two machines of `results/`, kernel by kernel.

python -m experiments.kinds                             # the page
python -m experiments.kinds --render docs/kinds.md      # kept
python -m experiments.kinds --machines A B --commit 952ced2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from asv.results import Results
from tabulate import tabulate

from benchmarks import axes
from report import useful_bytes
from report.compare.noise import LONG
from report.results import History, control

MACHINES = "nvidia-h200", "nvidia-h100-80gb-hbm3"
COMMIT = "952ced2"

#: The flag sets of the tables, and none, as the plain copy has. (`-dlcm=cg` differs from `-O3` by nothing here.)
FLAGS = "-Xptxas -O3", "-Xptxas -O0", ""


@dataclass(frozen=True)
class Ratio:
    """One configuration: its time on the second machine over that on the first, and the same of its ratio to a copy.

    Parameters
    ----------
    benchmark, kernel, dtype, flags : what is timed.
    time : seconds over seconds.
    copies : of the ratios to a copy; None for the copy itself.
    """

    benchmark: str
    kernel: str
    dtype: str
    flags: str
    time: float
    copies: float | None


def measured(machine: str, commit: str) -> tuple[History, Results]:
    """What a machine stored of a commit.

    Raises
    ------
    FileNotFoundError : it stored nothing.
    LookupError : it stored nothing of that commit, or no times.
    """
    history = History(machine)
    results = history.commit(commit)
    if results is None:
        known = ", ".join(each[:8] for each in history.commits())
        raise LookupError(f"{machine} has no results of commit {commit!r}, only of {known}")
    if next(_times(history, results), None) is None:
        raise LookupError(f"{machine} has no times of commit {commit!r}; name a machine with a GPU")
    return history, results


def _times(history: History, results: Results) -> Iterator[tuple[tuple[Any, ...], float, float | None]]:
    """Benchmark and parameters, seconds, copies."""
    for benchmark in history.benchmarks("time"):
        copies = {tuple(point.params.items()): point.value for point in history.points(results, control(benchmark))}
        for point in history.points(results, benchmark):
            key = tuple(point.params.items())
            if point.value is not None:
                yield (benchmark, *key), point.value, copies.get(key)


def ratios(first: tuple[History, Results], second: tuple[History, Results]) -> list[Ratio]:
    """Of what both measured and takes 20 µs or more on the first."""
    there = {key: rest for key, *rest in _times(*second)}
    found = []
    for (benchmark, *params), seconds, copies in _times(*first):
        other, other_copies = there.get((benchmark, *params), (None, None))
        known = useful_bytes.configuration(dict(params))
        if other is not None and known is not None and seconds >= LONG:
            share = other_copies / copies if copies and other_copies else None
            kernel = known.kernel or "copy by 16 bytes a thread"
            found.append(Ratio(benchmark.split(".")[1], kernel, known.dtype, known.flags or "", other / seconds, share))
    return found


def table(found: Sequence[Ratio], value: Callable[[Ratio], float | None]) -> str:
    """Medians over sizes, offsets and strides: a row a benchmark, kernel and flag set, a column a dtype."""
    rows = []
    for flags in FLAGS:
        cells: dict[tuple[str, str], dict[str, list[float]]] = {}
        for each in found:
            ratio = value(each)
            if each.flags == flags and ratio is not None:
                cells.setdefault((each.benchmark, each.kernel), {}).setdefault(each.dtype, []).append(ratio)
        for (benchmark, kernel), own in cells.items():
            medians = [f"{np.median(own[dtype]):.2f}" if dtype in own else "" for dtype in axes.DTYPES]
            rows.append([f"`{benchmark}`", f"`{kernel}`", f"`{flags}`" if flags else "", *medians])
    return str(tabulate(rows, ["", "kernel", "flags", *axes.DTYPES], tablefmt="github", disable_numparse=True))


def _facts(machines: Sequence[str], runs: Sequence[dict[str, Any]]) -> str:
    before = [run["before"] for run in runs]
    rows = [
        ["GPU", *(f"{run['gpu']} ({run['before']['uuid'][4:12]})" for run in runs)],
        ["driver", *(each["driver"] for each in before)],
        ["nvcc", *(run["nvcc"].rpartition(" V")[2] for run in runs)],
        ["date", *(run["ended"][:10] for run in runs)],
        ["theoretical peak of the memory, GB/s", *(f"{run['peak_bytes_per_second'] / 1e9:.0f}" for run in runs)],
        ["L2, MiB", *(str(each["l2_bytes"] // 2**20) for each in before)],
        ["highest clock of the multiprocessors, MHz", *(str(each["max_sm_clock_mhz"]) for each in before)],
    ]
    return str(tabulate(rows, ["", *machines], tablefmt="github", disable_numparse=True))


def report(machines: Sequence[str], commit: str) -> str:
    """A page of Markdown. Raises as `measured`."""
    sides = [measured(machine, commit) for machine in machines]
    runs = [history.timed_run_of(results) for history, results in sides]
    found = ratios(*sides)
    first, second = machines
    peak = runs[0]["peak_bytes_per_second"] / runs[1]["peak_bytes_per_second"]
    lines = [
        f"# {first} and {second}",
        "",
        "Made by `python -m experiments.kinds --render docs/kinds.md` from `results/`: commit "
        f"{sides[0][1].commit_hash[:8]}, one GPU of each kind.",
        "",
        _facts(machines, runs),
        "",
        "## Times",
        "",
        f"How many times as long a launch takes on {second} as on {first}: medians of the {len(found)} times",
        f"from 20 µs on. The peaks of their memories are {peak:.2f} times apart.",
        "",
        table(found, lambda each: each.time),
        "",
        "## Ratios to a copy",
        "",
        "The same of times in copies of the same bytes by 16 bytes a thread. 1.00: the ratio is the same on both.",
        "",
        table(found, lambda each: each.copies),
        "",
    ]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Print or keep the page; 2 if a machine has not measured the commit."""
    parser = argparse.ArgumentParser("python -m experiments.kinds", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--machines", nargs=2, default=MACHINES, metavar="MACHINE", help=f"default: {' '.join(MACHINES)}"
    )
    parser.add_argument("--commit", default=COMMIT, help=f"default: {COMMIT}")
    parser.add_argument("--render", type=Path, metavar="FILE", help="where the page is kept (default: printed)")
    options = parser.parse_args(words)
    try:
        page = report(options.machines, options.commit)
    except (FileNotFoundError, LookupError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.render:
        options.render.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
