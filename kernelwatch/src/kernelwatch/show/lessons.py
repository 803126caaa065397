"""What a lecture and an article printed of their kernels, beside the same kernels on the GPU of the README."""

from __future__ import annotations

from collections.abc import Iterator

from asv.results import Results
from tabulate import tabulate

from gpu_kernels.sweep import Sweep
from kernelwatch.asv import suite
from kernelwatch.show import published
from kernelwatch.store.results import History

#: The sweeps that hold them.
LECTURE, ADD = "LectureTranspose", "Add"


def tables(history: History, results: Results, gpu: str, peak: float) -> Iterator[str]:
    """Yield lines of Markdown: two tables, of what a commit's results hold.

    Parameters
    ----------
    history, results : History, Results
        A machine's, and of one commit.
    gpu : str
        What the machine is called.
    peak : float
        Its theoretical peak in bytes a second.
    """
    yield from _lecture(history, results, gpu, peak)
    yield from _article(history, results, gpu)


def _sweep(name: str) -> tuple[str, Sweep]:
    kinds = suite.BENCHMARKS.items()
    return next((bench, each) for bench, (kind, each) in kinds if kind is suite.Kind.TIMED and each.name == name)


def _times(history: History, results: Results, name: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return seconds and useful bytes a second of what a sweep measured, by kernel and dtype."""
    benchmark, sweep = _sweep(name)
    found = {}
    for params in sweep.points():
        seconds = history.value(results, benchmark, {axis: str(value) for axis, value in params.items()})
        if seconds is not None:
            rate = (suite.useful_bytes(benchmark, params) or 0) / seconds
            found[str(params["kernel"]), str(params["dtype"])] = seconds, rate
    return found


def _table(rows: list[list[str]], headers: list[str], texts: int) -> str:
    align = (*["left"] * texts, *["right"] * (len(headers) - texts))
    return str(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True, colalign=align))


def _lecture(history: History, results: Results, gpu: str, peak: float) -> Iterator[str]:
    printed = {kernel: (step, ms, share) for step, (kernel, ms, share) in published.LECTURE.items()}
    found = {kernel: each for (kernel, _), each in _times(history, results, LECTURE).items()}
    rows = []
    for kernel in dict.fromkeys([*printed, *found]):
        step, there_ms, there_share = printed.get(kernel, ("", None, ""))
        seconds, rate = found.get(kernel, (None, 0.0))
        here = ["", ""] if seconds is None else [f"{seconds * 1e3:.4f}", f"{100 * rate / peak:.1f}"]
        rows.append([step, f"`{kernel}`", "" if there_ms is None else f"{there_ms:g}", there_share, *here])
    yield (
        'The transposes of H. H. B. Sorensen\'s lecture "CUDA Performance Tuning: Memory Optimization", step by step, '
        "at 2880 x 2880 float64. "
        '"DRAM, %" is the useful bandwidth as a share of each GPU\'s peak. '
        "The suite times the first step at 256 x 256 only."
    )
    yield ""
    yield _table(rows, ["step", "kernel", "lecture, ms", "DRAM, %", f"{gpu}, ms", "DRAM, %"], 2)
    yield ""


def _article(history: History, results: Results, gpu: str) -> Iterator[str]:
    found = _times(history, results, ADD)
    dtypes = dict.fromkeys(dtype for _, dtype in found)
    rows = [
        [f"`{kernel}`", f"{micro:g}", *(f"{found[kernel, dtype][0] * 1e6:.1f}" for dtype in dtypes)]
        for kernel, micro in published.ARTICLE.items()
    ]
    yield (
        'Sums of two vectors from the article "Coalesced Memory Access in CUDA for High-Performance Computing", in µs. '
        "Here each vector has 2^26 elements. The article does not say on which GPU and at which size it measured."
    )
    yield ""
    yield _table(rows, ["kernel", "article", *(f"{gpu}, {dtype}" for dtype in dtypes)], 1)
    yield ""
