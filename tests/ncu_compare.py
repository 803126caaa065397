"""The executor's counters beside Nsight Compute's, for every kernel and dtype at awkward shapes.

python -m tests.ncu_compare --out docs/evidence/nsight-compute.md

Launches each case under ``ncu --clock-control none``, executes the same case on the CPU, and writes a Markdown table.
Exits with 0 if all counters agree: requests, sectors and lines exactly; of launches that move up to 8 MiB, store
wavefronts exactly and load wavefronts within 8 % (beyond, the chip's wavefront counters hold replays, which the table
reports). Where ptxas merges loads from shared memory, the chip makes fewer of them than the PTX says.
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gpu_kernels import KERNELS, catalog, launch
from gpu_kernels.errors import GpuKernelsError
from gpu_kernels.flags import DEFAULT
from gpu_kernels.sweep import Launch
from kernelwatch.counting import transactions
from tests.cases import COVERING_TRANSPOSES, awkward

#: Counter -> metric of Nsight Compute.
METRICS = {
    f"{prefix}{kind}_{name}": metric.format(op)
    for kind, op in (("load", "ld"), ("store", "st"))
    for prefix, name, metric in (
        ("", "requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
        ("", "sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
        ("", "lines", "l1tex__t_set_accesses_pipe_lsu_mem_global_op_{}.sum"),
        ("shared_", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
    )
}
#: Up to so many useful bytes each way the chip's store wavefronts are exact, its load wavefronts within this factor.
MANY, LOAD_TOLERANCE = 8 << 20, 1.08
#: Kernels whose loads from shared memory ptxas merges: four elements of a row of a tile are one load of 16 bytes.
MERGED = ("matmul_tiled", "matmul_corner_turning")
#: What the page does not show.
ATOMICS = "None of these kernels uses atomics, which were never compared with the chip and are not counted as it does."
#: A transpose with many threads, once each.
LARGE = {"rows": 4096, "columns": 4096}


def cases() -> list[Launch]:
    """Every kernel and dtype at the largest of its awkward shapes, and the transposes once with many threads."""
    listed = [
        Launch(name, dtype, DEFAULT, arguments)
        for name, kernel in KERNELS.items()
        for dtype in kernel.operation.dtypes
        for arguments in awkward(name)[-4:]
    ]
    return listed + [Launch(name, "float32", DEFAULT, LARGE) for name in COVERING_TRANSPOSES]


def launch_all(listed: Iterable[Launch]) -> None:
    """Launch each once, in order: what Nsight Compute profiles."""
    import pycuda.driver as cuda

    launch.context()
    for case in listed:
        function = launch.load(case.kernel, case.dtype)
        size = np.dtype(case.dtype).itemsize
        arrays = [
            cuda.mem_alloc(math.prod(shape) * size) for shape in catalog.get(case.kernel).arrays(**case.arguments)
        ]
        function(*arrays, **case.arguments)
        launch.context().synchronize()
        for array in arrays:
            array.free()


def profile(ncu: str, listed: Sequence[Launch], metrics: Mapping[str, str] = METRICS) -> list[dict[str, int]]:
    """The counters of each launch as Nsight Compute reads them: name -> value, of `metrics`, name -> metric.

    Raises
    ------
    RuntimeError
        ncu failed, or reported another number of launches; with its output.
    """
    command = [
        ncu,
        "--clock-control",
        "none",
        "--csv",
        "--print-units",
        "base",
        "--metrics",
        ",".join(metrics.values()),
    ]
    command += [sys.executable, "-m", "tests.ncu_compare", "--launch", *map(str, listed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = parse(done.stdout.splitlines(), metrics)
    if done.returncode != 0 or len(found) != len(listed):
        raise RuntimeError(f"{' '.join(command)}: {len(found)} launches\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return found


def parse(lines: Iterable[str], metrics: Mapping[str, str] = METRICS) -> list[dict[str, int]]:
    """The counters of each launch from ncu's CSV, which has one line for each launch and metric."""
    names = {metric: name for name, metric in metrics.items()}
    launches: dict[int, dict[str, int]] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["Metric Name"] in names:
            value = float(row["Metric Value"].replace(",", ""))
            launches.setdefault(int(row["ID"]), {})[names[row["Metric Name"]]] = int(value)
    return [launches[index] for index in sorted(launches)]


def execute(case: Launch) -> dict[str, int]:
    """The totals of a case as the executor counts them."""
    return transactions.count(case.kernel, case.dtype, **case.arguments).counters.totals()


def agrees(name: str, moved: int, ours: int, theirs: int, *, is_merged: bool = False) -> bool:
    """Whether a counter is what it must be; `moved` is the useful bytes that were read, or written."""
    if not name.endswith("wavefronts"):
        return ours == theirs
    if is_merged and name == "shared_load_wavefronts":
        return 0 < theirs <= ours
    if moved > MANY:
        return theirs >= ours
    return ours <= theirs <= LOAD_TOLERANCE * ours if "load" in name else ours == theirs


def _cell(ours: int, theirs: int, fine: bool) -> str:
    if ours == theirs:
        return str(ours)
    text = f"{ours} / {theirs}" + (f" ({100 * (theirs / ours - 1):+.1f} %)" if ours else "")
    return text if fine else f"**{text}**"


def table(readings: list[dict[str, int]]) -> tuple[str, int]:
    """A Markdown table of all cases, and how many disagree."""
    heads = ["kernel", "arguments", "dtype", *(name.replace("_", " ") for name in METRICS)]
    rows, wrong = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)], 0
    for case, reading in zip(cases(), readings, strict=True):
        ours, moved = execute(case), catalog.get(case.kernel).useful_bytes(case.dtype, **case.arguments) // 2
        is_merged = case.kernel in MERGED
        fine = {name: agrees(name, moved, ours[name], reading[name], is_merged=is_merged) for name in METRICS}
        wrong += not all(fine.values())
        arguments = ", ".join(f"{name}={value}" for name, value in case.arguments.items())
        cells = [_cell(ours[name], reading[name], fine[name]) for name in METRICS]
        rows.append("| " + " | ".join([case.kernel, arguments, case.dtype, *cells]) + " |")
    return "\n".join(rows), wrong


def _versions(ncu: str) -> str:
    import pycuda.driver as cuda

    said = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout.split("Version")[-1]
    driver = cuda.get_driver_version()
    name = launch.context().get_device().name()
    return f"{name}, CUDA {driver // 1000}.{driver % 1000 // 10} driver, Nsight Compute {said.split()[0]}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the comparison; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.ncu_compare", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the table to this file")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute's command line tool")
    parser.add_argument("--launch", nargs="+", type=Launch.parse, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.launch:
        launch_all(options.launch)
        return 0
    ncu = shutil.which(options.ncu)
    if ncu is None:
        sys.stderr.write(f"{options.ncu} is not on PATH; it comes with the CUDA toolkit\n")
        return 1
    try:
        readings = profile(ncu, cases())
        title = _versions(ncu)
    except (GpuKernelsError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    rows, wrong = table(readings)
    summary = f"{len(readings)} launches on {title}: {wrong} disagree."
    cells = "Cells with one number agree; others show ptxcount's, then the chip's."
    text = f"# Counted, and read by Nsight Compute\n\n{summary} {cells}\n\n{ATOMICS}\n\n{rows}\n"
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{summary}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
