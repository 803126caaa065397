"""The tables of docs/results.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tabulate import tabulate

from benchmarks import sweeps
from docs.figures import published
from docs.figures.picture import DTYPE, describe_conditions
from kernelwatch.config.project_root import ROOT
from kernelwatch.kernel import Launch
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.benchmark_names import copy_ratio_name
from kernelwatch.suite.sweep import Sweep

MACHINE = "nvidia-h200"

#: The page of results, with the markers between which the tables are.
PAGE = ROOT / "docs" / "results.md"
BEGIN, END = "<!-- results: made by `make readme` -->", "<!-- end of results -->"

LEVELS = ("-Xptxas -O3", "-Xptxas -O0")

#: Values of a benchmark's axes, by their names.
Params = Mapping[str, str | int]

#: Axes of the plain copy with which kernels are compared.
COPY_PARAMS: Params = {"rows x columns": sweeps.LARGEST, "dtype": DTYPE}


@dataclass(frozen=True)
class Row:
    """A row of the tables: a benchmark's configuration, its launch, and its time in seconds."""

    benchmark: str
    params: Params = field(hash=False)
    launch: Launch
    seconds: float

    @property
    def label(self) -> str:
        """The name of the kernel or of the copy, as code in Markdown."""
        return f"`{self.params.get('copy', self.launch.kernel)}`"


class ResultTables:
    """The newest results of a machine that have the plain copy.

    Raises
    ------
    LookupError
        No results have the plain copy, or the newest ones lack it at `sweeps.LARGEST`.
    """

    def __init__(self, history: History) -> None:
        copy = registry.current_suite().copy
        assert copy is not None, "this suite times it"
        self._history, self.copy = history, registry.time_benchmark_name(copy)
        results = history.find_newest(self.copy)
        if results is None:
            raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
        self._results, self.run = results, history.find_last_run(results, self.copy)
        self.peak = float(self.run["peak_bytes_per_second"])
        seconds = self.find_value(self.copy, COPY_PARAMS)
        if seconds is None:
            commit = results.commit_hash[:8]
            raise LookupError(f"the plain copy of {sweeps.LARGEST} was not measured on {commit}; run: make bench")
        self.copied = seconds
        #: Rows of the kernels that move as many elements as the largest matrix has.
        self.rows = [
            Row(name, params, launch, seconds)
            for name, sweep in _iter_timed()
            if _has_largest_size(sweep)
            for params in sweep.points()
            if params.get("rows x columns", sweeps.LARGEST) == sweeps.LARGEST
            and (launch := sweep.launch(params)).dtype == DTYPE
            and launch.flags in LEVELS
            and (seconds := self.find_value(name, params)) is not None  # None if the kernel is newer than the commit
        ]

    def find_value(self, benchmark: str, params: Params) -> float | None:
        """Return the stored value of a configuration; None if none is stored."""
        return self._history.find_value(self._results, benchmark, {axis: str(value) for axis, value in params.items()})

    def find_times(self, name: str) -> dict[tuple[str, str], tuple[float, float]]:
        """Return seconds and useful bytes per second of a sweep, by kernel and dtype."""
        benchmark, sweep = next(pair for pair in _iter_timed() if pair[1].name == name)
        return {
            (str(params["kernel"]), str(params["dtype"])): (seconds, _find_useful_bytes(benchmark, params) / seconds)
            for params in sweep.points()
            if (seconds := self.find_value(benchmark, params)) is not None
        }

    def format_cells(self, benchmark: str, params: Params, seconds: float) -> list[str]:
        """Return the cells of a row: ms, useful GB/s, per cent of the peak, and the time divided by the copy's."""
        copies = 1.0 if benchmark == self.copy else self.find_value(copy_ratio_name(benchmark), params)
        rate = _find_useful_bytes(benchmark, params) / seconds
        share = f"{100 * rate / self.peak:.1f}"
        return [f"{seconds * 1e3:.3f}", f"{rate / 1e9:.0f}", share, "" if copies is None else f"{copies:.2f}"]

    @property
    def facts(self) -> str:
        """The size, GPU, driver, nvcc version, date, commit and theoretical peak, as one text."""
        size = sweeps.LARGEST.replace("x", " x ")
        commit = self._results.commit_hash[:8]
        conditions = f"{size} {DTYPE} elements, {describe_conditions(self.run)}, commit {commit}."
        return f"{conditions} Theoretical peak {self.peak / 1e9:.0f} GB/s."


def _iter_timed() -> Iterator[tuple[str, Sweep]]:
    return (
        (name, sweep)
        for name, (kind, sweep) in sorted(registry.current_suite().benchmarks.items())
        if kind is registry.Kind.TIMED
    )


def _has_largest_size(sweep: Sweep) -> bool:
    largest = sweeps.LARGEST in sweep.axes.get("rows x columns", ()) and "kernel" in sweep.axes
    return largest or sweep.fixed.get("size") == sweeps.LARGEST_ELEMENTS


def _find_useful_bytes(benchmark: str, params: Params) -> int:
    return launch_facts.find_useful_bytes(benchmark, params) or 0


def render_page(results: ResultTables) -> Iterator[str]:
    """Yield the lines between the markers of `PAGE`."""
    _, rate, *_ = results.format_cells(results.copy, COPY_PARAMS, results.copied)
    yield results.facts
    yield (
        f"The plain copy moves 16 bytes per thread and reaches {rate} GB/s. "
        "The other copies move one element per thread. "
        'The column "copies" is the time of a kernel divided by that of the plain copy, interleaved with it.\n'
    )
    body = []
    for row in sorted(results.rows, key=lambda row: LEVELS.index(row.launch.flags)):
        printed = published.MILLISECONDS.get((row.launch.kernel, row.launch.flags))
        cells = results.format_cells(row.benchmark, row.params, row.seconds)
        body.append([row.label, f"`{row.launch.flags}`", *cells, "" if printed is None else f"{printed:.3f}"])
    headers = ["kernel", "flags", "ms", "GB/s", "% of peak", "copies", f"{published.GPU}, ms"]
    align = ["left"] * 2 + ["right"] * 5
    yield f"{tabulate(body, headers, 'github', disable_numparse=True, colalign=align)}\n"
    yield from _compare_with_others(results)


def _compare_with_others(results: ResultTables) -> Iterator[str]:
    rates = {
        kernel: 100 * rate / results.peak for (kernel, _), (_, rate) in results.find_times("LectureTranspose").items()
    }
    kernel, share = published.LECTURE
    yield (
        f"At 2880 x 2880 float64, `{kernel}` reaches {rates[kernel]:.0f} % of the peak and `transpose_vectorized` "
        f"{rates['transpose_vectorized']:.0f} %.\nThe former is the last kernel of H. H. B. Sorensen's lecture \"CUDA "
        f'Performance Tuning: Memory Optimization", which gives a DRAM utilisation of {share} % on its GPU.\n'
    )


def replace_between_markers(text: str, lines: Iterable[str]) -> str:
    """Return `text` with `lines` between `BEGIN` and `END`, instead of those there.

    Raises
    ------
    LookupError
        `text` lacks `BEGIN`, or lacks `END` after it.
    """
    head, begin, remainder = text.partition(BEGIN)
    _, end, tail = remainder.partition(END)
    if not (begin and end):
        raise LookupError(f"the text lacks the markers {BEGIN!r} and {END!r}")
    return head + "\n".join([BEGIN, "", *lines, END]) + tail
