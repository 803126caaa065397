"""How far times of the suite lie from Nsight Compute's duration of the same launch, configuration by configuration.

`python -m experiments.bias` times every kernel, size and dtype from DRAM, with the default flags. Nsight Compute times
all of them first, in one process. docs/evidence/bias.md has what was found on an H200.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tabulate import tabulate

from experiments import nsight
from kernelwatch import suite
from kernelwatch.asv.timed import measured
from kernelwatch.instrument import measuring
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import FLAGS

#: The largest acceptable bias: a share of the duration, or seconds, whichever is larger.
SHARE, SECONDS = 0.05, 1e-6

#: Seconds of the longest launch that is timed by itself, 24 times a sample: the longest ones would take minutes.
LONGEST_ISOLATED = 10e-3


@dataclass(frozen=True)
class Bias:
    """A configuration's seconds by Nsight Compute and by an instrument of the suite."""

    configuration: str
    kernel: str
    instrument: str
    nsight: float
    suite: float

    @property
    def share(self) -> float:
        """How much longer the suite's time is, as a share of Nsight Compute's."""
        return (self.suite - self.nsight) / self.nsight

    @property
    def acceptable(self) -> bool:
        """Whether it is within SHARE or SECONDS."""
        return abs(self.suite - self.nsight) <= max(SHARE * self.nsight, SECONDS)


def cases(kernels: Sequence[str] = ()) -> dict[str, Launch]:
    """Return what is timed from DRAM with the default flags, of some kernels or of all, by the configuration's name."""
    found = {}
    for sweep in suite.current().timed:
        for params in [] if sweep.in_l2 or sweep.isolated else sweep.points():
            launch = sweep.launch(params)
            if launch.flags == FLAGS and (not kernels or launch.kernel in kernels):
                values = [str(value) for axis, value in params.items() if axis != "flags"]
                found[f"{sweep.name}({', '.join(values)})"] = launch
    return found


def measure(launches: Mapping[str, Launch]) -> Iterator[Bias]:
    """Yield the bias of each instrument for each launch. Raises as `nsight.profile` and `measured`."""
    durations = map(median, nsight.seconds(list(launches.values())))
    with measuring.running():
        for (name, launch), seconds in zip(launches.items(), durations, strict=True):
            for instrument, isolated in (("back to back", False), ("isolated", True)):
                if not (isolated and seconds > LONGEST_ISOLATED):
                    samples = measured(launch, isolated=isolated).samples
                    found = Bias(name, launch.kernel, instrument, seconds, median(samples))
                    print(f"{name}, {instrument}: {100 * found.share:+.2f} %", file=sys.stderr, flush=True)
                    yield found


def report(found: Sequence[Bias]) -> str:
    """Return a table with a row a kernel and instrument, and one of all that is not acceptable, the worst first."""
    rows = []
    for kernel, instrument in dict.fromkeys((each.kernel, each.instrument) for each in found):
        own = [each for each in found if (each.kernel, each.instrument) == (kernel, instrument)]
        shares = [100 * each.share for each in own]
        beyond = sum(not each.acceptable for each in own)
        numbers = [f"{value:+.2f}" for value in (median(shares), min(shares), max(shares))]
        rows.append([kernel, instrument, len(own), *numbers, beyond])
    heads = ["kernel", "instrument", "configurations", "median, %", "lowest, %", "highest, %", "too far off"]
    worst = sorted((each for each in found if not each.acceptable), key=lambda each: -abs(each.share))
    far = [[each.configuration, each.instrument, 1e6 * each.nsight, 1e6 * each.suite] for each in worst]
    tables = [tabulate(rows, heads, "github", disable_numparse=True)]
    if far:
        tables.append(tabulate(far, ["too far off", "instrument", "Nsight Compute, µs", "suite, µs"], "github", ".2f"))
    return "\n\n".join(tables)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 2 if there is no GPU or Nsight Compute fails."""
    parser = argparse.ArgumentParser("python -m experiments.bias", description=__doc__.splitlines()[0])
    known = suite.current().kernels()
    parser.add_argument("--kernels", nargs="+", default=(), choices=known, metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="what is found, a JSON line each")
    options = parser.parse_args(words)
    return nsight.compared("bias", measure(cases(options.kernels)), report, options.out)


if __name__ == "__main__":
    sys.exit(main())
