"""The README's picture: useful bandwidth of every kernel, against what 32-byte sectors predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asv.results import Results

from report import useful_bytes
from report.results import History

#: Bytes that the memory system moves at least: a sector (CUDA C++ Best Practices Guide, "Coalesced Access").
SECTOR = 32

ITEMSIZE = 4


def facts(run: dict[str, Any]) -> str:
    """By what a run measured, and when, for a reader."""
    nvcc = run["nvcc"].rpartition("V")[2]
    return f"{run['gpu']}, driver {run['before']['driver']}, nvcc {nvcc}, {run['started'][:10]}"


def data(history: History) -> dict[str, Any]:
    """What the picture shows: GB/s by kernel, offset and stride, float32, -Xptxas -O3, and the peak.

    Raises
    ------
    LookupError : there are no times of this machine.
    """
    results = history.newest("time_copy.StrideCopy.time_back_to_back")
    if results is None:
        raise LookupError(f"no times of {history.machine}; run the suite on such a GPU: make bench")
    run = history.run_of(results, "time_copy.StrideCopy.time_back_to_back")
    return {
        "facts": f"{facts(run)}, commit {results.commit_hash[:8]}",
        "peak": round(run["peak_bytes_per_second"] / 1e9),
        "transposes": _rates(
            history, results, "time_transpose.Transpose.time_back_to_back", "kernel", rows_x_columns="12800x12800"
        ),
        "offsets": _rates(history, results, "time_copy.OffsetCopy.time_back_to_back", "offset"),
        "strides": _rates(history, results, "time_copy.StrideCopy.time_back_to_back", "stride"),
    }


def _rates(history: History, results: Results, benchmark: str, axis: str, **fixed: str) -> dict[str, float]:
    wanted = {name.replace("_", " "): value for name, value in fixed.items()}
    wanted |= {"dtype": "float32", "flags": "-Xptxas -O3"}
    return {
        point.params[axis]: round(useful / point.value / 1e9, 2)
        for point in history.points(results, benchmark)
        if point.value is not None and wanted.items() <= point.params.items()
        if (useful := useful_bytes.of(point.params)) is not None
    }


def predicted_by_sectors(stride: int, itemsize: int = ITEMSIZE) -> float:
    """Share of the bandwidth at stride 1 that 32-byte sectors leave: useful over moved bytes of a long strided copy."""
    return max(1 / stride, itemsize / SECTOR)


def predicted_by_offset(offset: int, itemsize: int = ITEMSIZE) -> float:
    """Share of the aligned bandwidth that 32-byte sectors leave if no cache keeps the one that two warps share.

    A warp of 32 threads takes `itemsize` sectors where it is aligned to them, and one more where it is not.
    """
    return 1.0 if offset * itemsize % SECTOR == 0 else itemsize / (itemsize + 1)


def draw(history: History, path: Path) -> None:
    """Draw the picture as SVG; its description holds the data that it shows."""
    import matplotlib as mpl  # noqa: PLC0415 -- slow to import, and only this needs it

    mpl.use("svg")
    from matplotlib import pyplot  # noqa: PLC0415

    shown = data(history)
    mpl.rcParams.update({"svg.hashsalt": "coalescing-watch", "svg.fonttype": "none", "font.size": 9})
    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(11, 3.4), width_ratios=(1.5, 1, 1), layout="constrained"
    )
    names = [name.removeprefix("transpose_") for name in shown["transposes"]]
    bars = left.barh(names, list(shown["transposes"].values()), color="#0072b2")
    left.bar_label(bars, fmt="%.0f", padding=3)
    left.invert_yaxis()
    left.set_xlim(0, shown["peak"])
    left.set_xlabel("useful GB/s")
    left.set_title("transposes, 12800 x 12800")
    for axes, key, what in ((middle, "offsets", "offset"), (right, "strides", "stride")):
        places = [str(value) for value in shown[key]]
        axes.plot(places, list(shown[key].values()), marker="o", color="#0072b2", label="measured")
        axes.set_ylim(0, shown["peak"])
        axes.set_xlabel(f"{what}, elements")
        axes.set_ylabel("useful GB/s")
        axes.set_title(f"copy by {what}")
    first = shown["strides"]["1"]
    right.plot(
        list(shown["strides"]),
        [first * predicted_by_sectors(int(stride)) for stride in shown["strides"]],
        linestyle="--",
        color="#d55e00",
        label="predicted by sectors",
    )
    right.legend(frameon=False)
    figure.suptitle(
        f"{shown['facts']}; float32, -Xptxas -O3\naxes end at the theoretical peak, {shown['peak']} GB/s", fontsize=9
    )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(shown, sort_keys=True)})
    pyplot.close(figure)
