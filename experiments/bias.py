"""How far times of the suite lie from Nsight Compute's duration of the same launch.

`python -m experiments.bias` times all that the suite times from DRAM with its default flags, or the launches that it is
given, such as "gather size=1000 float32". Nsight Compute times all of them first, in one process. docs/evidence/bias.md
has what was found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tabulate import tabulate

from experiments import nsight
from kernelwatch import suite
from kernelwatch.instrument import measuring
from kernelwatch.instrument.alone import measured
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import FLAGS

#: The largest acceptable bias: a share of the duration, or seconds, whichever is larger.
SHARE, SECONDS = 0.05, 0.5e-6

#: The suite's two instruments -> whether a launch is timed by itself.
INSTRUMENTS = {"back to back": False, "isolated": True}

#: Seconds of the longest launch that is timed by itself, 24 times a sample: the longest ones would take minutes.
LONGEST_ISOLATED = 10e-3


@dataclass(frozen=True)
class Bias:
    """A launch's seconds by Nsight Compute and by an instrument of the suite."""

    launch: str
    instrument: str
    nsight: float
    suite: float

    @property
    def percent(self) -> float:
        """How much longer the suite's time is."""
        return 100 * (self.suite / self.nsight - 1)

    @property
    def acceptable(self) -> bool:
        """Whether it is within SHARE or SECONDS."""
        return abs(self.suite - self.nsight) <= max(SHARE * self.nsight, SECONDS)


def timed_by_suite() -> list[Launch]:
    """Return each launch that is timed from DRAM with the default flags."""
    sweeps = [sweep for sweep in suite.current().timed if not sweep.in_l2]
    every = dict.fromkeys(sweep.launch(params) for sweep in sweeps for params in sweep.points())
    return [launch for launch in every if launch.flags == FLAGS]


def measure(launches: Sequence[Launch], instruments: Sequence[str] = tuple(INSTRUMENTS)) -> Iterator[Bias]:
    """Yield the bias of each instrument for each launch.

    Raises
    ------
    NsightError
        As `nsight.profile`.
    NotImplementedError, WrongOutputError, MeasuringError
        As `kernelwatch.instrument.alone.measured`.
    """
    durations = map(median, nsight.seconds(launches))
    with measuring.running():
        for launch, seconds in zip(launches, durations, strict=True):
            for instrument in instruments:
                isolated = INSTRUMENTS[instrument]
                if not (isolated and seconds > LONGEST_ISOLATED):
                    samples = measured(launch, isolated=isolated).samples
                    yield Bias(str(launch), instrument, seconds, median(samples))


def report(found: Sequence[Bias]) -> str:
    """Return a table with a row a kernel and instrument, and one of all that is not acceptable, the worst first."""
    groups: dict[tuple[str, str], list[Bias]] = {}
    for each in found:
        groups.setdefault((Launch.parse(each.launch).kernel, each.instrument), []).append(each)
    rows = []
    for (kernel, instrument), own in groups.items():
        percent = [each.percent for each in own]
        numbers = [f"{value:+.2f}" for value in (median(percent), min(percent), max(percent))]
        rows.append([kernel, instrument, len(own), *numbers, sum(not each.acceptable for each in own)])
    heads = ["kernel", "instrument", "launches", "median, %", "lowest, %", "highest, %", "too far off"]
    tables = [tabulate(rows, heads, "github", disable_numparse=True)]
    worst = sorted((each for each in found if not each.acceptable), key=lambda each: -abs(each.percent))
    if worst:
        far = [[each.launch, each.instrument, 1e6 * each.nsight, 1e6 * each.suite, each.percent] for each in worst]
        heads = ["too far off", "instrument", "Nsight Compute, µs", "suite, µs", "difference, %"]
        tables.append(tabulate(far, heads, "github", ".2f"))
    return "\n\n".join(tables)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 2 if there is no GPU or Nsight Compute fails."""
    parser = argparse.ArgumentParser("python -m experiments.bias", description=__doc__.splitlines()[0])
    parser.add_argument(
        "launches", nargs="*", type=Launch.parse, metavar="LAUNCH", help="default: what the suite times"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="what is found, a JSON line each")
    options = parser.parse_args(words)
    return nsight.compared("bias", measure(options.launches or timed_by_suite()), report, options.out)


if __name__ == "__main__":
    sys.exit(main())
