"""The README's table and picture, made from `results/`: `python -m report.readme`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asv.results import Results
from tabulate import tabulate

from benchmarks import ROOT, suite
from gpu_kernels import operations
from gpu_kernels.sweep import Launch, Sweep
from report import lessons, picture, published
from report.results import History

MACHINE = "nvidia-h200"

BEGIN, END = "<!-- results: made by `make readme` -->", "<!-- end of results -->"

LEVELS = ("-Xptxas -O3", "-Xptxas -O0")

DTYPE = "float32"


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


def block(history: History) -> str:
    """Return the part of the README between the two markers.

    Raises
    ------
    LookupError
        A configuration of the table was never measured.
    """
    benchmark = suite.time(suite.DEVICE_COPY)  # other benchmarks are told beside it; a run may measure few of them
    results = history.newest(benchmark)
    if results is None:
        raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
    return "\n".join(_lines(history, results, history.run_of(results, benchmark)))


def _lines(history: History, results: Results, run: dict[str, Any]) -> Iterator[str]:
    peak = run["peak_bytes_per_second"]
    copied: dict[str, str | int] = {"rows x columns": operations.LARGEST, "dtype": DTYPE}
    copy = _value(history, results, suite.time(suite.DEVICE_COPY), copied)
    if copy is None:
        raise LookupError(
            f"the plain copy of {operations.LARGEST} was not measured on {results.commit_hash[:8]}; run: make bench"
        )
    useful = suite.useful_bytes(suite.time(suite.DEVICE_COPY), copied) or 0
    found = ((row, _value(history, results, row.benchmark, row.params)) for row in rows())
    times = {row: seconds for row, seconds in found if seconds is not None}  # not what is newer than the commit
    yield BEGIN
    yield ""
    yield (
        f"{operations.LARGEST.replace('x', ' x ')} {DTYPE} elements, {picture.facts(run)}, "
        f"commit {results.commit_hash[:8]}. Theoretical peak {peak / 1e9:.0f} GB/s."
    )
    yield (
        f"The plain copy moves 16 bytes a thread and reaches {useful / copy / 1e9:.0f} GB/s. "
        "The other copies move one element a thread. "
        'The column "times a copy" is the time of a kernel divided by that of the plain copy: 1 is as fast. '
        "The two are timed in turns."
    )
    yield ""
    body = []
    for row, seconds in sorted(times.items(), key=lambda item: LEVELS.index(item[0].launch.flags)):
        rate = (suite.useful_bytes(row.benchmark, row.params) or 0) / seconds
        elsewhere = published.MILLISECONDS.get(row.launch)
        copies = _value(history, results, suite.control(row.benchmark), row.params)
        body.append(
            [
                row.label,
                f"`{row.launch.flags}`",
                f"{seconds * 1e3:.3f}",
                f"{rate / 1e9:.0f}",
                f"{100 * rate / peak:.1f}",
                "" if copies is None else f"{copies:.2f}",
                "" if elsewhere is None else f"{elsewhere:.3f}",
            ]
        )
    headers = ["kernel", "flags", "ms", "GB/s", "% of peak", "times a copy", f"{published.GPU}, ms"]
    align = ("left", "left", *["right"] * 5)
    yield tabulate(body, headers=headers, tablefmt="github", disable_numparse=True, colalign=align)
    yield ""
    yield from _order({row.launch: seconds for row, seconds in times.items()})
    yield from lessons.tables(history, results, run["gpu"].removeprefix("NVIDIA "), peak)
    yield END


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


def _value(history: History, results: Results, benchmark: str, params: dict[str, str | int]) -> float | None:
    return history.value(results, benchmark, {axis: str(value) for axis, value in params.items()})


def rewritten(text: str, new: str) -> str:
    """`text` with what stands from the first to the second marker replaced.

    Raises
    ------
    LookupError
        The markers are not there, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise LookupError(f"the text lacks the markers {BEGIN!r} and {END!r}")
    return before + new + after


def main(readme: Path = ROOT / "README.md") -> int:
    """Rewrite the README's table and the picture."""
    history = History(MACHINE)
    readme.write_text(rewritten(readme.read_text(encoding="utf-8"), block(history)), encoding="utf-8")
    picture.draw(history, ROOT / "docs" / "bandwidth.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
