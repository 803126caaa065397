"""How far times of the suite lie from Nsight Compute's duration of the same launch.

python -m experiments.bias                          # measures, keeps what it finds in docs/bias.jsonl
python -m experiments.bias --render docs/bias.md    # the tables of what is kept

Every kernel, size and dtype from DRAM, with the default flags: first all by Nsight Compute, which flushes the caches
before each launch, in one process; then each by the suite's two instruments, in a process of its own, on the same GPU.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks import values
from benchmarks.instruments import buffers, device, machine
from benchmarks.instruments.clock import TimedWork, take
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.isolated import Isolated
from benchmarks.instruments.replay import Cycle, back_to_back
from benchmarks.time_copy import MatrixSizedCopy, OffsetCopy, StrideCopy
from benchmarks.time_transpose import Transpose
from benchmarks.timed import SAMPLES, _Timed
from experiments import facts, forks, kept
from experiments.peers import nsight
from gpu_kernels.flags import DEFAULT
from report.results import ROOT
from runner import monitor

#: Instrument -> its name in tables.
INSTRUMENTS = {"back_to_back": "back to back", "isolated": "isolated"}

#: What a bias may be: a share of the duration or seconds, whichever is larger.
SHARE, SECONDS = 0.05, 1e-6


@dataclass(frozen=True)
class Reading:
    """One configuration: seconds by Nsight Compute, and by the suite's two instruments."""

    configuration: str
    kernel: str
    nsight: float
    back_to_back: float
    isolated: float

    def bias(self, instrument: str) -> float:
        """Seconds that an instrument reads more."""
        return float(getattr(self, instrument)) - self.nsight

    def within(self, instrument: str) -> bool:
        """Whether that is little."""
        return abs(self.bias(instrument)) <= max(SHARE * self.nsight, SECONDS)


def _cases() -> Iterator[tuple[str, str, type[_Timed], tuple[Any, ...]]]:
    """Name, kernel, benchmark and parameters, with the suite's default flags."""
    copies = {OffsetCopy: "offset_copy", StrideCopy: "stride_copy"}
    for benchmark in (Transpose, OffsetCopy, StrideCopy, MatrixSizedCopy):
        for params in itertools.product(*benchmark.params):
            if params[-1] == DEFAULT:
                own = values.matrix_sized_copy(params[0])[0] if benchmark is MatrixSizedCopy else params[0]
                name = f"{benchmark.__name__}({', '.join(map(str, params[:-1]))})"
                yield name, copies.get(benchmark, own), benchmark, params


CASES = {name: (kernel, benchmark, params) for name, kernel, benchmark, params in _cases()}


def by_suite(name: str, folder: Path) -> dict[str, float]:
    """Median seconds by each instrument, in this process. `folder` as `Experiment.verify` has it."""
    _, benchmark, params = CASES[name]
    device.require()
    experiment = Experiment(benchmark().work(*params), in_l2=False)
    experiment.verify(folder)
    made: dict[str, Callable[[Cycle], TimedWork]] = {"back_to_back": back_to_back, "isolated": Isolated}
    return {key: float(np.median(take(instrument(experiment.launches), SAMPLES))) for key, instrument in made.items()}


def launch_all(names: Sequence[str]) -> None:
    """Launch each configuration as often as Nsight Compute is to count it, and once before."""
    device.require()
    stream = device.cuda.Stream()
    for name in names:
        _, benchmark, params = CASES[name]
        work = benchmark().work(*params)
        rotation = buffers.Rotation(work.output_bytes, work.input_bytes, 1)
        for index in range(nsight.LAUNCHES + 1):
            work.launch(rotation.output(index), rotation.input(index), stream)
        stream.synchronize()


class NotProfiledError(Exception):
    """Nsight Compute, or what it profiled, failed."""


def by_nsight(ncu: str, names: Sequence[str]) -> dict[str, float]:
    """Median seconds of each configuration.

    Raises
    ------
    NotProfiledError : it ended with an error, or profiled other launches.
    """
    command = nsight.command(ncu, [sys.executable, "-m", "experiments.bias", "--launch", *names])
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NotProfiledError(f"{ncu} ended with exit code {done.returncode}")
    try:
        durations = nsight.durations(done.stdout.splitlines(), [CASES[name][0] for name in names])
    except ValueError as error:
        raise NotProfiledError(str(error)) from error
    return {name: float(np.median(each)) for name, each in zip(names, durations, strict=True)}


def measure(ncu: str, names: Sequence[str]) -> Iterator[Reading]:
    """All of the named configurations. First Nsight Compute: what is missing for it shows before minutes have gone."""
    print("Nsight Compute", file=sys.stderr, flush=True)
    truth = by_nsight(ncu, names)
    with tempfile.TemporaryDirectory() as folder, monitor.running():
        for place, name in enumerate(names):
            print(f"{place + 1} of {len(names)}: {name}", file=sys.stderr, flush=True)
            yield Reading(name, CASES[name][0], truth[name], **forks.call(by_suite, name, Path(folder)))


def read(path: Path) -> tuple[dict[str, Any], list[Reading]]:
    """The facts and readings that were kept."""
    known, entries = kept.read(path)
    return known, [Reading(**entry) for entry in entries]


def summary(readings: Sequence[Reading]) -> str:
    """A row a kernel."""
    rows = []
    for kernel in dict.fromkeys(reading.kernel for reading in readings):
        own = [reading for reading in readings if reading.kernel == kernel]
        cells = []
        for instrument in INSTRUMENTS:
            shares = [100 * reading.bias(instrument) / reading.nsight for reading in own]
            within = sum(reading.within(instrument) for reading in own)
            cells += [f"{np.median(shares):+.2f}", f"{min(shares):+.1f} to {max(shares):+.1f}", str(len(own) - within)]
        rows.append([f"`{kernel}`", len(own), *cells])
    heads = [f"{name}: {what}" for name in INSTRUMENTS.values() for what in ("median, %", "range, %", "too far off")]
    return str(tabulate(rows, ["kernel", "configurations", *heads], tablefmt="github", disable_numparse=True))


def outside(readings: Sequence[Reading]) -> str:
    """The configurations that an instrument is too far off for, the worst first."""
    worst = sorted(readings, key=lambda one: -max(abs(one.bias(instrument)) / one.nsight for instrument in INSTRUMENTS))
    rows = [
        [
            f"`{reading.configuration}`",
            f"{reading.nsight * 1e6:.2f}",
            *(f"{reading.bias(one) * 1e6:+.2f}{'' if reading.within(one) else ' (!)'}" for one in INSTRUMENTS),
        ]
        for reading in worst
        if not all(map(reading.within, INSTRUMENTS))
    ]
    heads = ["configuration", "Nsight Compute, µs", *(f"{name}, µs more" for name in INSTRUMENTS.values())]
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True))


def report(known: dict[str, Any], readings: Sequence[Reading]) -> str:
    """A page of Markdown."""
    lines = [
        "# How far times lie from Nsight Compute's duration",
        "",
        f"Made by `python -m experiments.bias --render docs/bias.md` from `docs/bias.jsonl`: {facts.sentence(known)}, "
        f"`{DEFAULT}`.",
        "",
        *(__doc__ or "").strip().splitlines()[-2:],
        f"Too far off: more than {SHARE:.0%} and more than {SECONDS * 1e6:g} µs.",
        "",
        summary(readings),
        "",
        "## Too far off",
        "",
        outside(readings),
        "",
    ]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print, or render what was measured; 2 if there is no GPU or Nsight Compute fails."""
    parser = argparse.ArgumentParser("python -m experiments.bias", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "bias.jsonl", help="what is found, JSON lines")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute's command line tool")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; tables of what is kept")
    parser.add_argument("--launch", nargs="+", choices=CASES, metavar="CASE", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.launch:
        launch_all(options.launch)
        return 0
    if options.render is not None:
        options.render.write_text(report(*read(options.data)), encoding="utf-8")
        return 0
    gpu = machine.gpu()
    if gpu is None:
        print("no GPU here; --render FILE shows what was measured on one", file=sys.stderr)
        return 2
    if shutil.which(options.ncu) is None:
        print(f"{options.ncu} is not on PATH; install Nsight Compute, or name it with --ncu", file=sys.stderr)
        return 2
    try:
        kept.write(options.data, facts.now(gpu), map(asdict, measure(options.ncu, list(CASES))))
    except NotProfiledError as error:
        print(f"nothing measured: {error}", file=sys.stderr)
        return 2
    print(report(*read(options.data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
