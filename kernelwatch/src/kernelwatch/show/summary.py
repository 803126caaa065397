"""The end of `make bench`: the verdict, what was skipped and why, and where to look: `kernelwatch summary`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from asv.results import Results
from tabulate import tabulate

from kernelwatch import suite
from kernelwatch.asv import progress
from kernelwatch.asv.sweep import Sweep
from kernelwatch.instrument import machine
from kernelwatch.instrument.skips import NEVER
from kernelwatch.project import ROOT
from kernelwatch.review.commits import CannotCompareError, find
from kernelwatch.review.comparison import compare
from kernelwatch.show import terminal
from kernelwatch.store import folders, git
from kernelwatch.store.results import History, Point
from kernelwatch.suite import Kind

#: The numbers that are shown of what was counted and compiled -> their format; of times, microseconds and rates.
SHOWN = {
    "track_registers": ".0f",
    "track_shared_bytes": ".0f",
    "track_load_sectors": ".2f",
    "track_store_sectors": ".2f",
    "track_bank_conflicts": ".2f",
}

#: What tables of operations a second say.
GFLOPS = "GFLOP/s"

#: Axes that are not the rows of a table.
_COMMON = ("dtype", "flags", "arch")


@dataclass(frozen=True)
class Table:
    """A benchmark's numbers by dtype, at the values of its other axes that tell most."""

    benchmark: str
    kind: Kind
    sweep: Sweep

    def lines(self, history: History, results: Results) -> Iterator[str]:
        """Yield the table of one commit, in each of its units; nothing where it has no values."""
        down = next((axis for axis in self.sweep.axes if axis not in _COMMON), "flags")
        fixed = {axis: str(value) for axis, value in self.sweep.chosen().items() if axis not in (down, "dtype")}
        points = {
            (point.params[down], point.params["dtype"]): point
            for point in history.points(results, self.benchmark)
            if point.value is not None and fixed.items() <= point.params.items()
        }
        arguments = {**self.sweep.fixed, **{axis: value for axis, value in fixed.items() if axis not in _COMMON}}
        where = [f"{axis} {value}" for axis, value in arguments.items()]
        where += [value for axis, value in fixed.items() if axis in _COMMON]
        dtypes = [str(dtype) for dtype in self.sweep.axes["dtype"]]
        for unit, shown in self._units().items():
            cells = {place: text for place, point in points.items() if (text := shown(point, point.value or 0.0))}
            rows = dict.fromkeys(row for row, _ in cells)
            body = [[row, *(cells.get((row, dtype), "-") for dtype in dtypes)] for row in rows]
            if cells:
                yield ""
                yield ", ".join(filter(None, [history.title(self.benchmark).partition(": time")[0], unit, *where]))
                yield tabulate(body, headers=[down, *dtypes], disable_numparse=True, stralign="right")

    def _units(self) -> dict[str, Callable[[Point, float], str]]:
        """What the cells are, where the title does not say it -> a cell; empty where it has none."""
        if self.kind is not Kind.TIMED:
            form = SHOWN[self.benchmark.rpartition(".")[2]]
            return {"": lambda _, value: format(value, form)}

        def rate(amount: Callable[[str, Mapping[str, str]], float | None]) -> Callable[[Point, float], str]:
            def shown(point: Point, seconds: float) -> str:
                done = amount(self.benchmark, point.params)
                return f"{done / seconds / 1e9:.0f}" if done and seconds else ""

            return shown

        return {
            "microseconds a launch": lambda _, seconds: f"{1e6 * seconds:.1f}",
            "useful GB/s": rate(suite.useful_bytes),
            GFLOPS: rate(suite.flops),
        }


def tables() -> Iterator[Table]:
    """Yield what is shown: compiled and counted numbers; times back to back from DRAM, by dtype or of what computes."""
    for name, (kind, sweep) in sorted(suite.BENCHMARKS.items(), key=lambda item: _ORDER.index(item[1][0])):
        telling = len(sweep.axes["dtype"]) > 1 or suite.flops(name, sweep.chosen())
        plain = sweep is not suite.DEVICE_COPY and telling
        if (kind is Kind.TIMED and plain and not sweep.isolated) or name.rpartition(".")[2] in SHOWN:
            yield Table(name, kind, sweep)


_ORDER = (Kind.COMPILED, Kind.COUNTED, Kind.TIMED, Kind.CONTROL)


def lines(history: History, results: Results) -> Iterator[str]:
    """Yield what was skipped of one commit and why, and where to look."""
    skipped: Counter[str] = Counter()
    for entry in history.run_of(results).get("skipped", []):
        is_shown = progress.tables() or not entry["reason"].startswith(NEVER)
        if entry["commit"] == results.commit_hash and is_shown:
            skipped[entry["reason"]] += entry["configurations"]
    for reason, count in skipped.most_common():
        yield f"Skipped: {count} configurations: {reason}"
    if not skipped:
        yield "Skipped: nothing"
    names = " and ".join(f"{place.name}/" for place in folders.places(history.results) if place.exists())
    yield f"Look at: html/index.html, served by `.venv/bin/asv preview`; numbers in {names}"
    yield f"         tables of them: {progress.TABLES}=1 .venv/bin/kernelwatch summary"
    yield f"         asv's own: .venv/bin/asv show {results.commit_hash[:8]} --machine {history.machine}"


def numbers(history: History, results: Results) -> Iterator[str]:
    """Yield the tables of one commit."""
    compiler = history.run_of(results).get("nvcc")
    yield f"commit {results.commit_hash[:8]} on {history.machine} ({compiler})"
    shown = [line for table in tables() for line in table.lines(history, results)]
    yield from shown
    yield ""
    if any(GFLOPS in line for line in shown):
        yield "Where arithmetic is the limit, a copy of the same bytes, the control, is no ceiling: GFLOP/s tell more."


def verdict(history: History, head: str, earlier: Iterable[str]) -> str:
    """Return the first line of the review against the newest earlier commit that this machine has results of."""
    base = next((commit for commit in earlier if history.commit(commit)), None)
    if base is None:
        return f"Compared with nothing: {history.machine} has results of no earlier commit."
    try:
        told = terminal.render(compare(find(base, head, history.machine, ROOT), ROOT))
    except CannotCompareError as error:
        told = f"cannot compare: {error}"
    first = told.strip().partition("\n")[0]
    return f"{first}\n         all of it: make compare BASE={base[:8]} HEAD={head[:8]} MACHINE={history.machine}"


def main() -> int:
    """Print how HEAD compares on this machine, and the summary; a verdict is no failure of the run."""
    head, *earlier = git.text(ROOT, "rev-list", "HEAD").split()
    history = History(machine.default_name(machine.gpu()))
    results = history.commit(head)
    if results is None:
        print(f"no results of {head[:8]} on {history.machine}; run: asv run --record-samples HEAD^!", file=sys.stderr)
        return 1
    if progress.tables():
        print("\n".join(numbers(history, results)))
    print(verdict(history, head, earlier))
    print("\n".join(lines(history, results)))
    return 0
