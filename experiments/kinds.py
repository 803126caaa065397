"""Compares two kinds of GPU: the times of one commit on two machines of `results/`, kernel by kernel.

python -m experiments.kinds                                    # compares, and keeps the ratios
python -m experiments.kinds --render docs/evidence/kinds.md    # the page of what is kept
python -m experiments.kinds --machines A B --commit 952ced2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from asv.results import Results

from experiments import facts, pages
from gpu_kernels import DTYPES
from gpu_kernels.sweep import Launch
from kernelwatch.asv import suite
from kernelwatch.instrument.tools import DEVICE_COPY
from kernelwatch.store import jsonl
from kernelwatch.store.noise import LONG
from kernelwatch.store.results import History

MACHINES = "nvidia-h200", "nvidia-h100-80gb-hbm3"
COMMIT = "952ced2"

#: Commits of the same machine code, which other GPUs of the first kind measured: how far one GPU stands for its kind.
BESIDE = "993f78c", "740a787"

#: The flag sets of the tables, and none, as the plain copy has.
FLAGS = "-Xptxas -O3", "-Xptxas -O0", ""

#: What a machine stored, and of it what is of one commit.
MachineResults = tuple[History, Results]


@dataclass(frozen=True)
class Ratio:
    """One configuration: its time on the second machine over that on the first, and the same of its ratio to a copy.

    `what` is the kernel, with its stride where it has one. The copy itself has no ratio to a copy.
    """

    benchmark: str
    what: str
    dtype: str
    flags: str
    time: float
    copies: float | None


def of_commit(machines: Sequence[str], commit: str) -> list[MachineResults]:
    """Return what machines stored of one commit.

    Raises
    ------
    FileNotFoundError
        One of the machines has no results.
    LookupError
        The machines have no such commit, or more than one, or one of them has no times of it.
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


def _what(params: Mapping[str, str], launch: Launch) -> str:
    """Return a name for what is timed. Each stride is another access and has its own; offsets hardly differ."""
    if launch.kernel == DEVICE_COPY.name:
        return "copy by 16 bytes a thread"
    return params.get("copy") or launch.kernel + (f" stride={params['stride']}" if "stride" in params else "")


def ratios(first: MachineResults, second: MachineResults) -> list[Ratio]:
    """Return those of what both measured with the flags of the tables, and takes LONG or more on the first."""
    there = {point.name(benchmark): (point.value, copies) for benchmark, point, copies in second[0].times(second[1])}
    found = []
    for benchmark, point, copies in first[0].times(first[1]):
        other, other_copies = there.get(point.name(benchmark), (None, None))
        launch, flags = suite.launch(benchmark, point.params), point.params.get("flags", "")
        if launch and point.value and other is not None and point.value >= LONG and flags in FLAGS:
            share = other_copies / copies if copies and other_copies else None
            what = _what(point.params, launch)
            found.append(Ratio(benchmark.split(".")[1], what, launch.dtype, flags, other / point.value, share))
    return found


#: Flags, benchmark and what is timed -> dtype -> ratios, over shapes, sizes and offsets.
Cells = dict[tuple[str, str, str], dict[str, list[float]]]


def cells(found: Sequence[Ratio], value: Callable[[Ratio], float | None]) -> Cells:
    """Return the cells of a table: in the order of the flag sets, then as they come; none where there is no value."""
    grouped: Cells = {}
    for each in sorted(found, key=lambda each: FLAGS.index(each.flags)):
        ratio = value(each)
        if ratio is not None:
            grouped.setdefault((each.flags, each.benchmark, each.what), {}).setdefault(each.dtype, []).append(ratio)
    return grouped


def table(found: Cells) -> str:
    """Return a table with a row for all but the dtype, a column a dtype."""
    given = {dtype for own in found.values() for dtype in own}
    dtypes = [*(dtype for dtype in DTYPES if dtype in given), *sorted(given - DTYPES.keys())]
    rows = []
    for (flags, benchmark, what), own in found.items():
        shares = [_cell(own[dtype]) if dtype in own else "" for dtype in dtypes]
        rows.append([f"`{benchmark}`", f"`{what}`", f"`{flags}`" if flags else "", *shares])
    return pages.table(rows, ["", "kernel", "flags", *dtypes])


def _cell(shares: Sequence[float]) -> str:
    """Return the median, and in brackets the smallest and the largest where they differ."""
    least, median, most = (f"{share:.2f}" for share in (min(shares), float(np.median(shares)), max(shares)))
    return median if least == most else f"{median} ({least} to {most})"


def another(times: Cells, others: Cells) -> list[str]:
    """Return how far the medians differ where another GPU of the first kind stands for it, and which differs most."""
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


def _beside(known: Mapping[str, Any], times: Cells, others: Mapping[str, Sequence[Ratio]]) -> str:
    """Return a table with a row a commit that another GPU of the first kind measured."""
    rows = [
        [commit, uuids, *another(times, cells(others[commit], lambda each: each.time))]
        for commit, uuids in known["beside"].items()
    ]
    return pages.table(rows, ["commit", "GPU", "medians", "differ by, median", "largest", "of"])


def _uuids(history: History, results: Results) -> str:
    """Return those of the GPUs that took times of a commit; others may have counted."""
    timed = {uuid for name in history.benchmarks("time") for uuid in history.gpus(results, benchmark=name)}
    return ", ".join(sorted(str(uuid)[4:12] for uuid in timed))


#: The facts of each machine on the page, by their labels.
_TOLD = {
    "GPU": "gpu",
    "its UUID begins with": "uuid",
    "driver": "driver",
    "nvcc": "nvcc",
    "date": "date",
    "theoretical peak of the memory, GB/s": "peak",
    "L2, MiB": "l2_mib",
    "highest clock of the multiprocessors, MHz": "clock_mhz",
}


def _machine(history: History, results: Results) -> dict[str, Any]:
    run = history.timed_run_of(results)
    return {
        "machine": history.machine,
        "gpu": run["gpu"],
        "uuid": _uuids(history, results),
        "driver": run["before"]["driver"],
        "nvcc": run["nvcc"].rpartition(" V")[2],
        "date": run["ended"][:10],
        "peak": round(run["peak_bytes_per_second"] / 1e9),
        "l2_mib": run["before"].get("l2_bytes", 0) // 2**20 or "not stored",
        "clock_mhz": run["before"]["max_sm_clock_mhz"],
    }


def compare(machines: Sequence[str], commit: str, beside: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the facts, then a ratio a line, each with its commit. Raises as `of_commit`."""
    sides = of_commit(machines, commit)
    first = {each: of_commit(machines[:1], each)[0] for each in beside}
    known = {
        "commit": commit,
        "sides": [_machine(*side) for side in sides],
        "beside": {each: _uuids(*stored) for each, stored in first.items()},
    }
    yield {"facts": known}
    for each, stored in {commit: sides[0], **first}.items():
        for ratio in ratios(stored, sides[1]):
            yield {"commit": each, **asdict(ratio)}


def read(path: Path) -> tuple[dict[str, Any], dict[str, list[Ratio]]]:
    """Return the facts, and the ratios by commit. Raises as `facts.read`."""
    known, entries = facts.read(path)
    found: dict[str, list[Ratio]] = {}
    for entry in entries:
        found.setdefault(entry.pop("commit"), []).append(Ratio(**entry))
    return known, found


def page(known: Mapping[str, Any], kept: Mapping[str, Sequence[Ratio]]) -> str:
    """Return a page of Markdown."""
    found, sides = kept[known["commit"]], known["sides"]
    first, second = (side["machine"] for side in sides)
    times = cells(found, lambda each: each.time)
    told = [
        [words, *(str(round(side[name]) if name == "peak" else side[name]) for side in sides)]
        for words, name in _TOLD.items()
    ]
    text = f"""\
# {first} and {second}

{pages.made("kinds")}: commit {known["commit"]}.

{pages.table(told, ["", first, second])}

## Times

The time of a launch on {second} divided by that on {first}. Each cell is the median over shapes, sizes
and offsets, with the smallest and the largest in brackets. {len(found)} times from 20 µs on are included. The peak
bandwidths of the two differ by a factor of {sides[0]["peak"] / sides[1]["peak"]:.2f}.

{table(times)}

## Ratios to a copy

The same for times divided by that of a plain copy of the same bytes. At 1.00, the ratio is the same on both.

{table(cells(found, lambda each: each.copies))}
"""
    if known["beside"]:
        text += f"""
## Another {first}

How much the medians of the times above differ if another GPU of the kind {first} takes its place.

{_beside(known, times, kept)}
"""
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print, or render what is kept; 2 if the machines have not measured the commit."""
    parser = argparse.ArgumentParser("python -m experiments.kinds", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=pages.EVIDENCE / "kinds.jsonl", help="what is found, JSON lines")
    add("--machines", nargs=2, default=MACHINES, metavar="NAME", help=f"default: {' '.join(MACHINES)}")
    add("--commit", default=COMMIT, help=f"default: {COMMIT}")
    add("--beside", nargs="*", default=BESIDE, metavar="COMMIT", help="of the same machine code, of other GPUs")
    add("--render", type=Path, metavar="FILE", help="compare nothing; the page of what is kept")
    options = parser.parse_args(words)
    if options.render is None:
        try:
            jsonl.replace(options.data, compare(options.machines, options.commit, options.beside))
        except (FileNotFoundError, LookupError) as error:
            sys.stderr.write(f"{error}\n")
            return 2
    pages.put(page(*read(options.data)), options.render)
    return 0


if __name__ == "__main__":
    sys.exit(main())
