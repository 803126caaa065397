"""The tables and the picture of README and docs/results.md, made from `results/`: `python -m kernelwatch.show.readme`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asv.results import Results
from tabulate import tabulate

from gpu_kernels import operations
from gpu_kernels.sweep import Launch, Sweep
from kernelwatch.asv import suite
from kernelwatch.project import ROOT
from kernelwatch.show import lessons, picture, published
from kernelwatch.store.results import History

MACHINE = "nvidia-h200"

BEGIN, END = "<!-- results: made by `make readme` -->", "<!-- end of results -->"

LEVELS = ("-Xptxas -O3", "-Xptxas -O0")

DTYPE = "float32"

#: The plain copy that others are compared with.
COPIED: dict[str, str | int] = {"rows x columns": operations.LARGEST, "dtype": DTYPE}


@dataclass(frozen=True)
class Row:
    """One row of the table: a benchmark's configuration, and what it launches."""

    benchmark: str
    params: dict[str, str | int] = field(hash=False)
    launch: Launch

    @property
    def label(self) -> str:
        """What it is called in the table: the kernel, and the argument that is no size."""
        return f"`{self.params.get('copy', self.launch.kernel)}`"


def rows() -> Iterator[Row]:
    """Yield everything that moves as many elements as the largest matrix has, copies first."""
    for name, (kind, sweep) in sorted(suite.BENCHMARKS.items()):
        if kind is suite.Kind.TIMED and _kernels_at_largest(sweep):
            for params in sweep.points():
                launch = sweep.launch(params)
                at_largest = params.get("rows x columns", operations.LARGEST) == operations.LARGEST
                if at_largest and launch.dtype == DTYPE and launch.flags in LEVELS:
                    yield Row(name, params, launch)


def _kernels_at_largest(sweep: Sweep) -> bool:
    largest = operations.LARGEST in sweep.axes.get("rows x columns", ()) and "kernel" in sweep.axes
    return largest or sweep.fixed.get("size") == operations.LARGEST_ELEMENTS


@dataclass(frozen=True)
class Measured:
    """What the tables show: one commit's results, and the times of its rows and of the plain copy in seconds."""

    history: History
    results: Results
    run: dict[str, Any]
    copy: float
    times: dict[Row, float]

    @classmethod
    def newest(cls, history: History) -> Measured:
        """Return the newest results of a machine.

        Raises
        ------
        LookupError
            The plain copy was never measured, or not at that size.
        """
        benchmark = suite.time(suite.DEVICE_COPY)  # others are told beside it; a run may measure few of them
        results = history.newest(benchmark)
        if results is None:
            raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
        copy = _value(history, results, benchmark, COPIED)
        if copy is None:
            raise LookupError(
                f"the plain copy of {operations.LARGEST} was not measured on {results.commit_hash[:8]}; run: make bench"
            )
        found = ((row, _value(history, results, row.benchmark, row.params)) for row in rows())
        times = {row: seconds for row, seconds in found if seconds is not None}  # not what is newer than the commit
        return cls(history, results, history.run_of(results, benchmark), copy, times)

    @property
    def peak(self) -> float:
        """The theoretical peak in bytes a second."""
        return float(self.run["peak_bytes_per_second"])

    def cells(self, benchmark: str, params: Mapping[str, str | int], seconds: float) -> list[str]:
        """Return a time in ms, its useful GB/s, and their share of the peak in per cent."""
        rate = (suite.useful_bytes(benchmark, params) or 0) / seconds
        return [f"{seconds * 1e3:.3f}", f"{rate / 1e9:.0f}", f"{100 * rate / self.peak:.1f}"]

    def copies(self, row: Row) -> str:
        """Return the time of a row in copies; empty where there is none."""
        ratio = _value(self.history, self.results, suite.control(row.benchmark), row.params)
        return "" if ratio is None else f"{ratio:.2f}"

    def facts(self) -> str:
        """Say what was measured, on what, and when."""
        size = operations.LARGEST.replace("x", " x ")
        return (
            f"{size} {DTYPE} elements, {picture.facts(self.run)}, commit {self.results.commit_hash[:8]}. "
            f"Theoretical peak {self.peak / 1e9:.0f} GB/s."
        )


def short(found: Measured) -> Iterator[str]:
    """Yield the README's table: the usual flags, and the plain copy."""
    benchmark = suite.time(suite.DEVICE_COPY)
    usual = {row: seconds for row, seconds in found.times.items() if row.launch.flags == LEVELS[0]}
    body = [
        [row.label, *found.cells(row.benchmark, row.params, each), found.copies(row)] for row, each in usual.items()
    ]
    body.append(["plain copy, 16 bytes a thread", *found.cells(benchmark, COPIED, found.copy), f"{1:.2f}"])
    yield found.facts()
    yield ""
    yield _table(body, ["kernel", "ms", "GB/s", "% of peak", "times a copy"], texts=1)
    yield ""


def whole(found: Measured) -> Iterator[str]:
    """Yield the tables of the page of results."""
    _, rate, _ = found.cells(suite.time(suite.DEVICE_COPY), COPIED, found.copy)
    yield found.facts()
    yield (
        f"The plain copy moves 16 bytes a thread and reaches {rate} GB/s. "
        "The other copies move one element a thread. "
        'The column "times a copy" is the time of a kernel divided by that of the plain copy: 1 is as fast. '
        "The two are timed in turns."
    )
    yield ""
    body = []
    for row, seconds in sorted(found.times.items(), key=lambda item: LEVELS.index(item[0].launch.flags)):
        elsewhere = published.MILLISECONDS.get(row.launch)
        cells = found.cells(row.benchmark, row.params, seconds)
        there = "" if elsewhere is None else f"{elsewhere:.3f}"
        body.append([row.label, f"`{row.launch.flags}`", *cells, found.copies(row), there])
    headers = ["kernel", "flags", "ms", "GB/s", "% of peak", "times a copy", f"{published.GPU}, ms"]
    yield _table(body, headers, texts=2)
    yield ""
    yield from _order({row.launch: seconds for row, seconds in found.times.items()})
    yield from lessons.tables(found.history, found.results, found.run["gpu"].removeprefix("NVIDIA "), found.peak)


#: The pages that show results, and the lines between their markers.
PAGES: dict[Path, Callable[[Measured], Iterator[str]]] = {
    ROOT / "README.md": short,
    ROOT / "docs" / "results.md": whole,
}


def _table(body: list[list[str]], headers: list[str], texts: int) -> str:
    align = (*["left"] * texts, *["right"] * (len(headers) - texts))
    return str(tabulate(body, headers=headers, tablefmt="github", disable_numparse=True, colalign=align))


def _order(times: dict[Launch, float]) -> Iterator[str]:
    """Where the order of the kernels that were timed on both differs."""
    for level in LEVELS:
        known = [launch for launch in published.MILLISECONDS if launch.flags == level and launch in times]
        here, there = (sorted(known, key=each.__getitem__) for each in (times, published.MILLISECONDS))
        names = [", ".join(f"`{launch.kernel}`" for launch in order) for order in (here, there)]
        if here == there:
            yield f"With `{level}` the order is the same as on the {published.GPU}. Fastest first: {names[0]}."
        else:
            yield f"With `{level}` the order differs. Fastest first: {names[0]}. On the {published.GPU}: {names[1]}."
        yield ""


def _value(history: History, results: Results, benchmark: str, params: Mapping[str, str | int]) -> float | None:
    return history.value(results, benchmark, {axis: str(value) for axis, value in params.items()})


def rewritten(text: str, lines: Iterable[str]) -> str:
    """`text` with what stands between the two markers replaced.

    Raises
    ------
    LookupError
        The markers are not there, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise LookupError(f"the text lacks the markers {BEGIN!r} and {END!r}")
    return before + "\n".join([BEGIN, "", *lines, END]) + after


def main() -> int:
    """Rewrite the tables and the picture."""
    history = History(MACHINE)
    found = Measured.newest(history)
    for page, lines in PAGES.items():
        page.write_text(rewritten(page.read_text(encoding="utf-8"), lines(found)), encoding="utf-8")
    picture.draw(history, ROOT / "docs" / "bandwidth.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
