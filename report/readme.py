"""The README's table and picture, made from `results/`: `python -m report.readme`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asv.results import Results
from tabulate import tabulate

from gpu_kernels import KERNELS
from report import picture
from report.results import ROOT, History, control

MACHINE = "nvidia-h200"

BEGIN, END = "<!-- results: made by `make readme` -->", "<!-- end of results -->"

#: The matrix; the copies move as many elements.
SQUARE = {"rows": 12800, "columns": 12800}

_MATRIX = {"rows_x_columns": "12800x12800", "dtype": "float32"}

LEVELS = ("-Xptxas -O3", "-Xptxas -O0")


@dataclass(frozen=True)
class Row:
    """One row of the table: a benchmark's configuration, and the printed milliseconds on an RTX 3090 by level."""

    label: str
    benchmark: str
    params: dict[str, str]
    rtx_3090_ms: dict[str, float]


def _copy(copy: str, label: str) -> Row:
    return Row(label, "time_copy.MatrixSizedCopy.time_back_to_back", {"copy": copy, "dtype": "float32"}, {})


def _transpose(kernel: str, optimised: float | None = None, plain: float | None = None) -> Row:
    figures = {level: ms for level, ms in zip(LEVELS, (optimised, plain), strict=True) if ms is not None}
    return Row(f"`{kernel}`", "time_transpose.Transpose.time_back_to_back", {"kernel": kernel, **_MATRIX}, figures)


#: RTX 3090: Lei Mao, "CUDA Coalesced Memory Access" (2023), latencies printed there.
ROWS = (
    _copy("offset_copy offset=1", "`offset_copy`, offset 1"),
    _copy("stride_copy stride=2", "`stride_copy`, stride 2"),
    _transpose("transpose_read_coalesced", 5.337, 7.624),
    _transpose("transpose_write_coalesced", 2.924, 5.220),
    _transpose("transpose_read_write_coalesced_unpadded"),
    _transpose("transpose_read_write_coalesced", 2.345, 4.804),
)


def block(history: History) -> str:
    """The part of the README between the two markers.

    Raises
    ------
    LookupError : a configuration of the table was never measured.
    """
    results = history.newest(ROWS[-1].benchmark)
    if results is None:
        raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
    return "\n".join(_lines(history, results))


def _lines(history: History, results: Results) -> Iterator[str]:
    run = history.run_of(results, ROWS[-1].benchmark)
    peak = run["peak_bytes_per_second"]
    copy = _value(history, results, "time_copy.DeviceCopy.time_back_to_back", **_MATRIX)
    times = {
        (row.label, level): _value(history, results, row.benchmark, flags=level, **row.params)
        for row in ROWS
        for level in LEVELS
    }
    yield BEGIN
    yield ""
    yield (
        f"12800 x 12800 float32 elements, {picture.facts(run)}, "
        f"commit {results.commit_hash[:8]}. Theoretical peak {peak / 1e9:.0f} GB/s. "
        '"times a copy": the time in copies of the same bytes by the widest accesses, both timed in turns. '
        f"Such a copy reaches {_useful_bytes('float32') / copy / 1e9:.0f} GB/s."
    )
    yield ""
    body = []
    for level in LEVELS:
        for row in ROWS:
            seconds = times[row.label, level]
            rate = _useful_bytes("float32") / seconds
            elsewhere = row.rtx_3090_ms.get(level)
            body.append(
                [
                    row.label,
                    f"`{level}`",
                    f"{seconds * 1e3:.3f}",
                    f"{rate / 1e9:.0f}",
                    f"{100 * rate / peak:.1f}",
                    f"{_value(history, results, control(row.benchmark), flags=level, **row.params):.2f}",
                    "" if elsewhere is None else f"{elsewhere:.3f}",
                ]
            )
    headers = ["kernel", "flags", "ms", "GB/s", "% of peak", "times a copy", "RTX 3090, ms"]
    align = ("left", "left", *["right"] * 5)
    yield tabulate(body, headers=headers, tablefmt="github", disable_numparse=True, colalign=align)
    yield ""
    yield from _order(times)
    yield END


def _order(times: dict[tuple[str, str], float]) -> Iterator[str]:
    """Where the order of the three transposes that were timed on both differs."""
    known = [row for row in ROWS if row.rtx_3090_ms]
    for level in LEVELS:
        here = sorted(known, key=lambda row: times[row.label, level])
        there = sorted(known, key=lambda row: row.rtx_3090_ms[level])
        names = [", ".join(row.label for row in order) for order in (here, there)]
        if here == there:
            yield f"With `{level}` the order is the RTX 3090's (fastest first): {names[0]}."
        else:
            yield f"With `{level}` the order is (fastest first) {names[0]}; on the RTX 3090 it is {names[1]}."
        yield ""


def _value(history: History, results: Results, benchmark: str, **params: str) -> float:
    value = history.value(results, benchmark, **params)
    if value is None:
        raise LookupError(f"{benchmark} {params} was not measured on {results.commit_hash[:8]}; run: make bench")
    return value


def _useful_bytes(dtype: str) -> int:
    """Bytes that each row of the table must move: they all move the elements of one matrix."""
    return KERNELS["transpose_read_coalesced"].useful_bytes(dtype, **SQUARE)


def rewritten(text: str, new: str) -> str:
    """`text` with what stands from the first to the second marker replaced.

    Raises
    ------
    LookupError : the markers are not there, once each and in order.
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
