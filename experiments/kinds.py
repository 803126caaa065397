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

#: Commits of the same machine code, which other GPUs of the first kind measured: how far one GPU stands for its kind.
BESIDE = "993f78c", "740a787"

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


#: Flags, benchmark and what is timed -> dtype -> ratios, over shapes, sizes and offsets.
Cells = dict[tuple[str, str, str], dict[str, list[float]]]


def cells(found: Sequence[Ratio], value: Callable[[Ratio], float | None]) -> Cells:
    """The cells of a table: in the order of the flag sets, then as they come; none where there is no value."""
    grouped: Cells = {}
    for each in sorted(found, key=lambda each: FLAGS.index(each.flags)):
        ratio = value(each)
        if ratio is not None:
            grouped.setdefault((each.flags, each.benchmark, each.what), {}).setdefault(each.dtype, []).append(ratio)
    return grouped


def table(found: Cells) -> str:
    """A row for all but the dtype, a column a dtype."""
    rows = []
    for (flags, benchmark, what), own in found.items():
        shares = [_cell(own[dtype]) if dtype in own else "" for dtype in axes.DTYPES]
        rows.append([f"`{benchmark}`", f"`{what}`", f"`{flags}`" if flags else "", *shares])
    return str(tabulate(rows, ["", "kernel", "flags", *axes.DTYPES], tablefmt="github", disable_numparse=True))


def another(times: Cells, others: Cells) -> list[str]:
    """How far the medians differ where another GPU of the first kind stands for it, and which differs most."""
    changes = {
        f"`{benchmark}`, `{what}`, {dtype}, `{flags}`": (
            float(np.median(ratios)),
            float(np.median(others[flags, benchmark, what][dtype])),
        )
        for (flags, benchmark, what), row in times.items()
        for dtype, ratios in row.items()
        if dtype in others.get((flags, benchmark, what), {})
    }
    name, (here, there) = max(changes.items(), key=lambda change: abs(change[1][1] - change[1][0]))
    apart = [abs(second - first) for first, second in changes.values()]
    return [str(len(apart)), f"{np.median(apart):.3f}", f"{max(apart):.3f}", f"{name}: {there:.3f}, not {here:.3f}"]


def _beside(machine: str, commits: Sequence[str], times: Cells, second: tuple[History, Results]) -> str:
    """A row a commit that another GPU of the first kind measured."""
    rows = []
    for commit in commits:
        ((history, results),) = measured([machine], commit)
        others = cells(ratios((history, results), second), lambda each: each.time)
        rows.append([commit, _uuids(history, results), *another(times, others)])
    heads = ["commit", "GPU", "medians", "differ by, median", "largest", "of"]
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True))


def _uuids(history: History, results: Results) -> str:
    """Of the GPUs that took times of a commit; others may have counted."""
    timed = {uuid for name in history.benchmarks("time") for uuid in history.gpus(results, benchmark=name)}
    return ", ".join(sorted(str(uuid)[4:12] for uuid in timed))


def _facts(machines: Sequence[str], sides: Sequence[tuple[History, Results]]) -> str:
    runs = [history.timed_run_of(results) for history, results in sides]
    before = [run["before"] for run in runs]
    rows = [
        ["GPU", *(run["gpu"] for run in runs)],
        ["its UUID begins with", *(_uuids(*side) for side in sides)],
        ["driver", *(each["driver"] for each in before)],
        ["nvcc", *(run["nvcc"].rpartition(" V")[2] for run in runs)],
        ["date", *(run["ended"][:10] for run in runs)],
        ["theoretical peak of the memory, GB/s", *(f"{run['peak_bytes_per_second'] / 1e9:.0f}" for run in runs)],
        ["L2, MiB", *(str(each["l2_bytes"] // 2**20) for each in before)],
        ["highest clock of the multiprocessors, MHz", *(str(each["max_sm_clock_mhz"]) for each in before)],
    ]
    return str(tabulate(rows, ["", *machines], tablefmt="github", disable_numparse=True))


def report(machines: Sequence[str], commit: str, beside: Sequence[str] = ()) -> str:
    """A page of Markdown. Raises as `measured`."""
    sides = measured(machines, commit)
    found = ratios(*sides)
    one, other = (history.timed_run_of(results)["peak_bytes_per_second"] for history, results in sides)
    first, second = machines
    times = cells(found, lambda each: each.time)
    others = f" --beside {' '.join(beside)}" if beside else ""
    lines = [
        f"# {first} and {second}",
        "",
        f"Made by `python -m experiments.kinds --machines {first} {second} --commit {commit}{others}`",
        "from `results/`.",
        "",
        _facts(machines, sides),
        "",
        "## Times",
        "",
        f"How many times as long a launch takes on {second} as on {first}: of {len(found)} times from 20 µs on,",
        "the median over shapes, sizes and offsets (the smallest to the largest). The peaks of the memories are",
        f"{one / other:.2f} times apart.",
        "",
        table(times),
        "",
        "## Ratios to a copy",
        "",
        "The same of times in copies of the same bytes by 16 bytes a thread. 1.00: the ratio is the same on both.",
        "",
        table(cells(found, lambda each: each.copies)),
        "",
    ]
    if beside:
        lines += [
            f"## Another {first}",
            "",
            f"By how much the medians of the times above differ where another GPU stands for {first}.",
            "",
            _beside(first, beside, times, sides[1]),
            "",
        ]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Print or keep the page; 2 if the machines have not measured the commit."""
    parser = argparse.ArgumentParser("python -m experiments.kinds", description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs=2, default=MACHINES, metavar="NAME", help=f"default: {' '.join(MACHINES)}")
    parser.add_argument("--commit", default=COMMIT, help=f"default: {COMMIT}")
    parser.add_argument(
        "--beside",
        nargs="*",
        default=BESIDE,
        metavar="COMMIT",
        help="of the same machine code, by other GPUs of the first kind; or none",
    )
    parser.add_argument("--render", type=Path, metavar="FILE", help="where the page is kept (default: printed)")
    options = parser.parse_args(words)
    try:
        page = report(options.machines, options.commit, options.beside)
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
