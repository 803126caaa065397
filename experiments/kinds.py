"""What another kind of GPU changes: the times of one commit on two machines of `results/`, kernel by kernel.

python -m experiments.kinds                             # the page
python -m experiments.kinds --render docs/kinds.md      # kept
python -m experiments.kinds --machines A B --commit 952ced2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from asv.results import Results
from tabulate import tabulate

from benchmarks import axes
from report import useful_bytes
from report.compare.noise import LONG
from report.results import History

MACHINES = "nvidia-h200", "nvidia-h100-80gb-hbm3"
COMMIT = "952ced2"

#: The flag sets of the tables, and none, as the plain copy has.
FLAGS = "-Xptxas -O3", "-Xptxas -O0", ""


@dataclass(frozen=True)
class Ratio:
    """One configuration: its time on the second machine over that on the first, and the same of its ratio to a copy.

    Parameters
    ----------
    benchmark, what, dtype, flags : what is timed; `what` is the kernel, with its stride where it has one.
    time : seconds over seconds.
    copies : of the ratios to a copy; None for the copy itself.
    """

    benchmark: str
    what: str
    dtype: str
    flags: str
    time: float
    copies: float | None


def measured(machines: Sequence[str], commit: str) -> list[tuple[History, Results]]:
    """What machines stored of one commit.

    Raises
    ------
    FileNotFoundError : one stored nothing.
    LookupError : they have no such commit, or more than one, or one has no times of it.
    """
    histories = [History(machine) for machine in machines]
    known = sorted(set.intersection(*(set(history.commits()) for history in histories)))
    named = [each for each in known if each.startswith(commit)]
    if len(named) != 1:
        shared = ", ".join(each[:8] for each in known)
        raise LookupError(f"{len(named)} commits {commit!r} that {' and '.join(machines)} measured: {shared or 'none'}")
    found = []
    for history in histories:
        results = history.commit(named[0])
        if results is None or next(history.times(results), None) is None or not history.timed_run_of(results):
            raise LookupError(f"{history.machine} has no times of commit {commit!r} with the record of their run")
        found.append((history, results))
    return found


def _what(params: dict[str, str], kernel: str | None) -> str:
    """Strides are told apart, since each is another access; offsets hardly differ."""
    stride = f" stride={params['stride']}" if "stride" in params else ""
    return params.get("copy") or f"{kernel or 'copy by 16 bytes a thread'}{stride}"


def ratios(first: tuple[History, Results], second: tuple[History, Results]) -> list[Ratio]:
    """Of what both measured with the flags of the tables, and takes 20 µs or more on the first."""
    there = {point.name(benchmark): (point.value, copies) for benchmark, point, copies in second[0].times(second[1])}
    found = []
    for benchmark, point, copies in first[0].times(first[1]):
        other, other_copies = there.get(point.name(benchmark), (None, None))
        flags = point.params.get("flags", "")
        if point.value and other is not None and point.value >= LONG and flags in FLAGS:
            configuration = useful_bytes.configuration(point.params)
            share = other_copies / copies if copies and other_copies else None
            what = _what(point.params, configuration.kernel if configuration else None)
            name = benchmark.split(".")[1]
            found.append(Ratio(name, what, point.params["dtype"], flags, other / point.value, share))
    return found


def _cell(shares: Sequence[float]) -> str:
    """The median, and in brackets the smallest and the largest where they differ."""
    least, median, most = (f"{share:.2f}" for share in (min(shares), float(np.median(shares)), max(shares)))
    return median if least == most else f"{median} ({least} to {most})"


def table(found: Sequence[Ratio], value: Callable[[Ratio], float | None]) -> str:
    """Over shapes, sizes and offsets: a row for all else but the dtype, a column a dtype."""
    rows = []
    for flags in FLAGS:
        cells: dict[tuple[str, str], dict[str, list[float]]] = {}
        for each in found:
            ratio = value(each)
            if each.flags == flags and ratio is not None:
                cells.setdefault((each.benchmark, each.what), {}).setdefault(each.dtype, []).append(ratio)
        for (benchmark, what), own in cells.items():
            shares = [_cell(own[dtype]) if dtype in own else "" for dtype in axes.DTYPES]
            rows.append([f"`{benchmark}`", f"`{what}`", f"`{flags}`" if flags else "", *shares])
    return str(tabulate(rows, ["", "kernel", "flags", *axes.DTYPES], tablefmt="github", disable_numparse=True))


def _facts(machines: Sequence[str], sides: Sequence[tuple[History, Results]]) -> str:
    runs = [history.timed_run_of(results) for history, results in sides]
    before = [run["before"] for run in runs]
    rows = [
        ["GPU", *(run["gpu"] for run in runs)],
        [
            "its UUID begins with",
            *(", ".join(sorted(str(uuid)[4:12] for uuid in history.gpus(one))) for history, one in sides),
        ],
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
    sides = measured(machines, commit)
    found = ratios(*sides)
    one, other = (history.timed_run_of(results)["peak_bytes_per_second"] for history, results in sides)
    first, second = machines
    lines = [
        f"# {first} and {second}",
        "",
        f"Made by `python -m experiments.kinds --machines {first} {second} --commit {commit}` from `results/`.",
        "",
        _facts(machines, sides),
        "",
        "## Times",
        "",
        f"How many times as long a launch takes on {second} as on {first}: of {len(found)} times from 20 µs on,",
        "the median over shapes, sizes and offsets (the smallest to the largest). The peaks of the memories are",
        f"{one / other:.2f} times apart.",
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
    """Print or keep the page; 2 if the machines have not measured the commit."""
    parser = argparse.ArgumentParser("python -m experiments.kinds", description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs=2, default=MACHINES, metavar="NAME", help=f"default: {' '.join(MACHINES)}")
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
