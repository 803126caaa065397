"""Nsight Compute's metrics of launches. ncu runs `python -m experiments.nsight TIMES LAUNCH ...` for this."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from experiments.launcher import Launcher
from kernelwatch.config.project_root import ROOT
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry

#: The metric with the duration of a launch, in nanoseconds.
DURATION = "gpu__time_duration.sum"

#: Options of ncu. It flushes the caches before each launch. It does not lock the clocks, nor does any other tool here.
OPTIONS = "--profile-from-start off --cache-control all --clock-control none --csv --print-units base"


class NsightError(Exception):
    """Nsight Compute is missing, failed, or profiled other launches than expected."""


def profile(launches: Sequence[Launch], metrics: Sequence[str], repeat: int = 1) -> list[list[dict[str, float]]]:
    """Return, for each launch and each of its repetitions, the values by metric, in base units.

    One call of `ncu` profiles all launches. Each launch is first verified without profiling, which also loads its code.

    Raises
    ------
    NsightError
        `ncu` is not on PATH, ended with an error, or profiled other launches.
    """
    if shutil.which("ncu") is None:
        raise NsightError("ncu is not on PATH; it comes with the CUDA toolkit, or with Nsight Compute")
    program = [sys.executable, "-m", "experiments.nsight", str(repeat), *map(str, launches)]
    command = ["ncu", *OPTIONS.split(), "--metrics", ",".join(metrics), *program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NsightError(f"ncu ended with exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    names, readings = parse_readings(done.stdout.splitlines())
    expected = [
        _bare_function_name(registry.find_kernel(launch.kernel).entry) for launch in launches for _ in range(repeat)
    ]
    if names != expected:
        raise NsightError(f"ncu profiled {len(names)} launches, not the {len(expected)} in their order")
    return [readings[first : first + repeat] for first in range(0, len(readings), repeat)]


def _bare_function_name(name: str) -> str:
    """Return a C++ name without its type, namespaces, template arguments and parameters."""
    return re.split("[<(]", name.removeprefix("void "))[0].rpartition("::")[2]


def parse_readings(lines: Iterable[str]) -> tuple[list[str], list[dict[str, float]]]:
    """Parse ncu's CSV: return the function names of the launches, and the values of each launch by metric.

    Raises `NsightError` for a duration that is not in nanoseconds.
    """
    functions: dict[str, str] = {}
    readings: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["Metric Name"] == DURATION and row["Metric Unit"] not in ("ns", "nsecond"):
            raise NsightError(f"ncu gave {DURATION} in {row['Metric Unit']!r}, not in nanoseconds")
        functions[row["ID"]] = _bare_function_name(row["Kernel Name"])
        readings.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(functions.values()), list(readings.values())


def measure_durations(launches: Sequence[Launch], repeat: int = 5) -> list[list[float]]:
    """Return the durations in seconds of the repetitions of each launch. Raises NsightError, like `profile`."""
    return [
        [1e-9 * reading[DURATION] for reading in repetitions] for repetitions in profile(launches, [DURATION], repeat)
    ]


def launch_all(launches: Iterable[Launch], times: int) -> None:
    """Verify each launch, then repeat it `times` times for the profiler."""
    for launch in launches:
        with ExitStack() as stack:
            Launcher(launch, stack, rotate=False).launch_for_profiler(times)


if __name__ == "__main__":
    launch_all(map(Launch.parse, sys.argv[2:]), int(sys.argv[1]))
