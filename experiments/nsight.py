"""Nsight Compute's duration of each launch, with flushed caches: what other instruments are compared with."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence

METRIC = "gpu__time_duration.sum"

#: Profiled launches a configuration, after the one that loads the code.
LAUNCHES = 10

#: Caches are flushed before each launch; the clocks are left alone, as for every other method.
OPTIONS = f"--cache-control all --clock-control none --metrics {METRIC} --csv --print-units base"


class NsightError(Exception):
    """Nsight Compute failed, or profiled something else than it should have."""


def command(ncu: str, profiled: Sequence[str]) -> list[str]:
    """Return the command line that profiles another."""
    return [ncu, *OPTIONS.split(), *profiled]


def version(ncu: str) -> str | None:
    """Return the version of the tool `ncu`; None if there is no such tool, or it prints none."""
    if shutil.which(ncu) is None:
        return None
    said = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"Version ([\d.]+)", said)
    return match[1] if match else None


def durations(lines: Iterable[str], kernels: Sequence[str]) -> list[list[float]]:
    """Return seconds a launch, of LAUNCHES + 1 launches of each configuration all but the first.

    Parameters
    ----------
    lines : iterable of str
        What ncu printed: its CSV, among lines of others.
    kernels : sequence of str
        Each configuration's, in the order in which they were launched.

    Raises
    ------
    NsightError
        It profiled other launches than those.
    """
    found = [(kernel, seconds) for kernel, seconds in _launches(lines) if kernel in kernels]
    each = LAUNCHES + 1
    expected = [kernel for kernel in kernels for _ in range(each)]
    if [kernel for kernel, _ in found] != expected:
        raise NsightError(f"ncu profiled {len(found)} launches of the kernels, not {len(expected)} in their order")
    seconds = [duration for _, duration in found]
    return [seconds[place * each + 1 : (place + 1) * each] for place in range(len(kernels))]


def _launches(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Yield the kernel's name and the seconds of each launch."""
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        if row["Metric Name"] == METRIC:
            if row["Metric Unit"] not in ("ns", "nsecond"):
                raise NsightError(f"ncu gave {METRIC} in {row['Metric Unit']!r}, not in nanoseconds")
            yield row["Kernel Name"].partition("(")[0], float(row["Metric Value"].replace(",", "")) * 1e-9
