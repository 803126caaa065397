"""Bias of times by the suite, and by other tools, against Nsight Compute's duration of the same launch.

`python -m experiments.bias` times all launches that the suite times from DRAM with its default flags, or the given
launches, such as "gather size=1000 float32". Nsight Compute first times all of them, in one process.
docs/evidence/bias.md has the findings, docs/evidence/peers.md those of other tools (`--tools nvbench`;
requirements/peers.txt).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from tabulate import tabulate

from experiments import nsight, peers
from kernelwatch.instrument import machine, server
from kernelwatch.instrument.session import measure_launch
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.suite import registry
from kernelwatch.toolchain import nvcc, releases
from ptxcount.util import atomic_write

#: Maximum acceptable bias: this share of the duration, or these seconds, whichever is longer.
SHARE, SECONDS = 0.05, 0.5e-6

#: The suite's two ways of timing -> True if each launch is timed by itself.
INSTRUMENTS = {"back to back": False, "isolated": True}

#: Maximum seconds of a launch that is timed by itself. Each sample has 24 launches, so longer ones would take minutes.
LONGEST_ISOLATED = 10e-3


@dataclass(frozen=True)
class Bias:
    """The duration of a launch in seconds, by Nsight Compute (``nsight``) and by another tool (``seconds``)."""

    launch: str
    tool: str
    nsight: float
    seconds: float

    @property
    def percent(self) -> float:
        """Excess of the tool's time over Nsight Compute's, in percent."""
        return 100 * (self.seconds / self.nsight - 1)

    @property
    def is_acceptable(self) -> bool:
        """True if the bias is within SHARE or SECONDS."""
        return abs(self.seconds - self.nsight) <= max(SHARE * self.nsight, SECONDS)


def list_timed_launches() -> list[Launch]:
    """Return each launch that is timed from DRAM with the default flags."""
    sweeps = [sweep for sweep in registry.current_suite().timed if not sweep.in_l2]
    launches = dict.fromkeys(sweep.launch(params) for sweep in sweeps for params in sweep.points())
    return [launch for launch in launches if launch.flags == FLAGS]


def measure_biases(launches: Sequence[Launch], tools: Sequence[str] = tuple(INSTRUMENTS)) -> Iterator[Bias]:
    """Yield the bias of each tool for each launch, except launches that the tool cannot time.

    Raises the exceptions of `nsight.profile` and of `kernelwatch.instrument.session.measure_launch`.
    """
    durations = list(zip(launches, map(median, nsight.measure_durations(launches)), strict=True))
    for tool in tools:
        if tool in peers.TOOLS:
            for launch, seconds in durations:
                samples = peers.take_samples(tool, launch)
                if samples:
                    yield Bias(str(launch), tool, seconds, median(samples))
            continue
        isolated = INSTRUMENTS[tool]
        with server.start_server():
            for launch, seconds in durations:
                if not (isolated and seconds > LONGEST_ISOLATED):
                    samples = measure_launch(launch, isolated=isolated).samples
                    yield Bias(str(launch), tool, seconds, median(samples))


def format_report(biases: Sequence[Bias]) -> str:
    """Return a table with a row for each kernel and tool, and a table of unacceptable biases, the worst first."""
    groups: dict[tuple[str, str], list[Bias]] = {}
    for bias in biases:
        groups.setdefault((Launch.parse(bias.launch).kernel, bias.tool), []).append(bias)
    rows = []
    for (kernel, tool), group in groups.items():
        percent = [bias.percent for bias in group]
        numbers = [f"{value:+.2f}" for value in (median(percent), min(percent), max(percent))]
        rows.append([kernel, tool, len(group), *numbers, sum(not bias.is_acceptable for bias in group)])
    heads = ["kernel", "tool", "launches", "median, %", "lowest, %", "highest, %", "too far off"]
    tables = [tabulate(rows, heads, "github", disable_numparse=True)]
    worst = sorted((bias for bias in biases if not bias.is_acceptable), key=lambda bias: -abs(bias.percent))
    if worst:
        rows_of_worst = [
            [bias.launch, bias.tool, 1e6 * bias.nsight, 1e6 * bias.seconds, bias.percent] for bias in worst
        ]
        heads = ["too far off", "tool", "Nsight Compute, µs", "tool, µs", "difference, %"]
        tables.append(tabulate(rows_of_worst, heads, "github", ".2f"))
    return "\n\n".join(tables)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; return 2 if there is no GPU or Nsight Compute fails."""
    parser = argparse.ArgumentParser("python -m experiments.bias", description=__doc__.splitlines()[0])
    parser.add_argument(
        "launches", nargs="*", type=Launch.parse, metavar="LAUNCH", help="default: what the suite times"
    )
    tools = [*INSTRUMENTS, *peers.TOOLS]
    parser.add_argument("--tools", nargs="+", default=list(INSTRUMENTS), choices=tools, help="default: the suite's two")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write each bias as a line of JSON")
    options = parser.parse_args(words)
    gpu = machine.find_gpu()
    if gpu is None:
        print("there is no GPU here; docs/evidence/bias.md shows what was measured on one", file=sys.stderr)
        return 2
    try:
        biases = list(measure_biases(options.launches or list_timed_launches(), options.tools))
    except nsight.NsightError as error:
        print(error, file=sys.stderr)
        return 2
    if options.out:
        atomic_write.write(options.out, "".join(f"{json.dumps(vars(bias))}\n" for bias in biases))
    facts, date = machine.volatile_facts(), datetime.now(timezone.utc).date()
    compiler = releases.parse_version(nvcc.version_text(nvcc.find_nvcc()))
    context = f"{gpu.name} ({facts.get('uuid')}), driver {facts.get('driver')}, nvcc {compiler}, {date}"
    print(f"{context}\n\n{format_report(biases)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
