"""What Nsight Compute reads of launches, which `python -m experiments.nsight LAUNCH ...` makes under it."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from experiments.launcher import Launcher
from kernelwatch.instrument import device, machine
from kernelwatch.kernel import Launch
from kernelwatch.project import ROOT
from kernelwatch.store import jsonl

T = TypeVar("T")

#: The duration of a launch, in nanoseconds.
DURATION = "gpu__time_duration.sum"

#: Caches are flushed before each launch; the clocks are left alone, as for every other method.
OPTIONS = "--cache-control all --clock-control none --csv --print-units base"


class NsightError(Exception):
    """Nsight Compute is missing, failed, or profiled something else than it should have."""


def profile(launches: Sequence[Launch], metrics: Sequence[str], repeat: int = 1) -> list[list[dict[str, float]]]:
    """Return what Nsight Compute reads: of each launch, of each of its repetitions, a value by metric in base units.

    Each is launched once before its repetitions: that loads the code, and its output is verified. Raises NsightError if
    `ncu` is not on PATH, ended with an error, or profiled other launches.
    """
    if shutil.which("ncu") is None:
        raise NsightError("ncu is not on PATH; it comes with the CUDA toolkit, or with Nsight Compute")
    kernels = [launch.kernel for launch in launches]
    wanted = f"regex:^({'|'.join(map(re.escape, dict.fromkeys(kernels)))})$"
    command = ["ncu", *OPTIONS.split(), "--kernel-name", wanted, "--metrics", ",".join(metrics)]
    command += [sys.executable, "-m", "experiments.nsight", str(repeat), *map(str, launches)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NsightError(f"ncu ended with exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    names, readings = _read(done.stdout.splitlines())
    each = repeat + 1
    if names != [kernel for kernel in kernels for _ in range(each)]:
        raise NsightError(f"ncu profiled {len(names)} launches, not {len(kernels) * each} in their order")
    return [readings[place * each + 1 : (place + 1) * each] for place in range(len(kernels))]


def _read(lines: Iterable[str]) -> tuple[list[str], list[dict[str, float]]]:
    """Return the kernel, and the value of each metric, of every launch; lines of the program are left out."""
    kernels: dict[str, str] = {}
    readings: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["Metric Name"] == DURATION and row["Metric Unit"] not in ("ns", "nsecond"):
            raise NsightError(f"ncu gave {DURATION} in {row['Metric Unit']!r}, not in nanoseconds")
        kernels[row["ID"]] = row["Kernel Name"].partition("(")[0]
        readings.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(kernels.values()), list(readings.values())


def seconds(launches: Sequence[Launch], repeat: int = 10) -> list[list[float]]:
    """Return the duration of each repetition of each launch. Raises as `profile`."""
    return [[1e-9 * reading[DURATION] for reading in each] for each in profile(launches, [DURATION], repeat)]


def launch_all(launches: Iterable[Launch], repeat: int) -> None:
    """Launch each once, verified, and then as often as it is to be read."""
    device.require()
    stream = device.cuda.Stream()
    for launch in launches:
        with closing(Launcher(launch, rotate=False)) as launcher:
            for _ in range(repeat):
                launcher(stream.handle)
            stream.synchronize()


def compared(study: str, found: Iterable[T], report: Callable[[list[T]], str], out: Path | None) -> int:
    """Measure, print where and a report, keep a JSON line each; return 0, or 2 without a GPU or Nsight Compute."""
    gpu = machine.gpu()
    if gpu is None:
        print(f"there is no GPU here; docs/evidence/{study}.md shows what was measured on one", file=sys.stderr)
        return 2
    try:
        every = list(found)
    except NsightError as error:
        print(error, file=sys.stderr)
        return 2
    if out:
        jsonl.replace(out, map(vars, every))
    now, date = machine.volatile(), datetime.now(timezone.utc).date()
    where = f"{gpu.name} ({now.get('uuid')}), driver {now.get('driver')}, nvcc {machine.nvcc_release()}, {date}"
    print(f"{where}\n\n{report(every)}")
    return 0


if __name__ == "__main__":
    launch_all(map(Launch.parse, sys.argv[2:]), int(sys.argv[1]))
