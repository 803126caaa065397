"""The end of `make bench`: what was found, what was skipped and why, and where to look: `python -m report.summary`."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from asv.results import Results
from tabulate import tabulate

from benchmarks import axes
from benchmarks.instruments import machine
from report import useful_bytes
from report.results import ROOT, History, Point


@dataclass(frozen=True)
class Table:
    """A table of kernels by dtype.

    Parameters
    ----------
    title : what it shows, with its unit.
    benchmark : asv's name of it.
    rows : the axis that goes down.
    fixed : the values of all axes but rows and dtype.
    show : a point with a value -> text.
    """

    title: str
    benchmark: str
    rows: str
    fixed: dict[str, str]
    show: Callable[[Point], str]


def _in(form: str) -> Callable[[Point], str]:
    return lambda point: form.format(point.value)


def _microseconds(point: Point) -> str:
    return f"{(point.value or 0.0) * 1e6:.1f}"


def _rate(point: Point) -> str:
    """Useful GB/s."""
    useful = useful_bytes.of(point.params)
    return f"{useful / point.value / 1e9:.0f}" if useful and point.value else "-"


def _timed(what: str, benchmark: str, rows: str, fixed: dict[str, str]) -> Iterator[Table]:
    """Times, and what bandwidths they make."""
    for unit, show in (("microseconds a launch", _microseconds), ("useful GB/s", _rate)):
        yield Table(f"{what}, {unit}, -Xptxas -O3", benchmark, rows, {**fixed, "flags": "-Xptxas -O3"}, show)


#: To show another metric: one row.
TABLES = (
    Table(
        "Registers a thread, sm_90, -Xptxas -O3",
        "track_compiled.Compiled.track_registers",
        "kernel",
        {"flags": "-Xptxas -O3", "arch": "sm_90"},
        _in("{:.0f}"),
    ),
    Table(
        "Shared memory a block, bytes, sm_90, -Xptxas -O3",
        "track_compiled.Compiled.track_shared_bytes",
        "kernel",
        {"flags": "-Xptxas -O3", "arch": "sm_90"},
        _in("{:.0f}"),
    ),
    Table(
        "Sectors a load request, transpose of 1000 x 700, counted on the CPU",
        "track_counted.Transpose.track_load_sectors",
        "kernel",
        {"flags": "-Xptxas -O3"},
        _in("{:.2f}"),
    ),
    Table(
        "Sectors a store request, transpose of 1000 x 700, counted on the CPU",
        "track_counted.Transpose.track_store_sectors",
        "kernel",
        {"flags": "-Xptxas -O3"},
        _in("{:.2f}"),
    ),
    Table(
        "Bank conflicts a shared memory request, transpose of 1000 x 700, counted on the CPU",
        "track_counted.Transpose.track_bank_conflicts",
        "kernel",
        {"flags": "-Xptxas -O3"},
        _in("{:.2f}"),
    ),
    Table(
        "Sectors a load request by offset, counted on the CPU",
        "track_counted.OffsetCopy.track_load_sectors",
        "offset",
        {"flags": "-Xptxas -O3"},
        _in("{:.2f}"),
    ),
    Table(
        "Sectors a load request by stride, counted on the CPU",
        "track_counted.StrideCopy.track_load_sectors",
        "stride",
        {"flags": "-Xptxas -O3"},
        _in("{:.2f}"),
    ),
    *_timed(
        "Transpose of 12800 x 12800 from DRAM",
        "time_transpose.Transpose.time_back_to_back",
        "kernel",
        {"rows x columns": "12800x12800"},
    ),
    *_timed(
        "Copy of 2^26 elements by offset from DRAM",
        "time_copy.OffsetCopy.time_back_to_back",
        "offset",
        {"size": "67108864"},
    ),
    *_timed(
        "Copy of 2^22 elements by stride from DRAM",
        "time_copy.StrideCopy.time_back_to_back",
        "stride",
        {"size": "4194304"},
    ),
)


def lines(history: History, results: Results) -> Iterator[str]:
    """The summary of one commit's results."""
    run = history.run_of(results)
    yield f"coalescing-watch: commit {results.commit_hash[:8]} on {history.machine} ({run.get('nvcc')})"
    for table in TABLES:
        cells = {
            (point.params[table.rows], point.params["dtype"]): table.show(point)
            for point in history.points(results, table.benchmark)
            if point.value is not None and table.fixed.items() <= point.params.items()
        }
        if cells:
            body = [[row, *(cells.get((row, dtype), "-") for dtype in axes.DTYPES)] for row, _ in _firsts(cells)]
            yield ""
            yield table.title
            yield tabulate(body, headers=[table.rows, *axes.DTYPES], disable_numparse=True, stralign="right")
    yield ""
    skipped: Counter[str] = Counter()
    for entry in run.get("skipped", []):
        if entry["commit"] == results.commit_hash:
            skipped[entry["reason"]] += entry["configurations"]
    for reason, count in skipped.most_common():
        yield f"Skipped: {count} configurations: {reason}"
    if not skipped:
        yield "Skipped: nothing"
    yield "Look at: html/index.html, served by `.venv/bin/asv preview`; numbers in results/; asv's own table:"
    yield f"         .venv/bin/asv show {results.commit_hash[:8]} --machine {history.machine}"


def _firsts(cells: dict[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    """One cell of each row, in order."""
    seen = set()
    for cell in cells:
        if cell[0] not in seen:
            seen.add(cell[0])
            yield cell


def main() -> int:
    """Print the summary of HEAD on this machine."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    history = History(machine.default_name(machine.gpu()))
    results = history.commit(head.stdout.strip())
    if results is None:
        print(f"no results of {head.stdout.strip()[:8]} on {history.machine}; run: make bench", file=sys.stderr)
        return 1
    print("\n".join(lines(history, results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
