"""How far times of the suite lie from Nsight Compute's duration of the same launch.

python -m experiments.bias                                   # measures, and keeps the results
python -m experiments.bias --render docs/evidence/bias.md    # the page of what is kept
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from experiments import facts, nsight, pages
from experiments.cases import sweeps
from experiments.peers.launcher import Launcher
from gpu_kernels.flags import DEFAULT
from gpu_kernels.sweep import Launch
from kernelwatch.asv.timed import measured
from kernelwatch.instrument import device, machine, measuring
from kernelwatch.project import ROOT
from kernelwatch.store import jsonl

#: The suite's instruments, by the names that the kept lines have for them -> whether launches are isolated.
INSTRUMENTS = {"back_to_back": False, "isolated": True}

#: The largest acceptable bias: a share of the duration, or seconds, whichever is larger.
SHARE, SECONDS = 0.05, 1e-6

#: Seconds of the longest launch that is timed by itself, 24 times a sample: the longest ones would take minutes.
LONGEST_ISOLATED = 10e-3

_HOW = f"""\
Every kernel, size and dtype was timed from DRAM, with the default flags. Nsight Compute timed all of them first, in one
process, and flushed the caches before each launch. Then the suite's two instruments timed each, on the same GPU.
Launches of more than {LONGEST_ISOLATED * 1e3:g} ms are timed back to back alone.
"Too far off" means by more than {SHARE:.0%} and more than {SECONDS * 1e6:g} µs."""


@dataclass(frozen=True)
class Bias:
    """One configuration: seconds by Nsight Compute and by the suite's instruments, None where one was not used."""

    configuration: str
    kernel: str
    nsight: float
    back_to_back: float | None
    isolated: float | None

    def seconds(self, instrument: str) -> float:
        """Return how many seconds more an instrument gives: NaN where it did not time this."""
        given = getattr(self, instrument)
        return math.nan if given is None else float(given) - self.nsight

    def within(self, instrument: str) -> bool:
        """Return whether that is acceptable, or unknown."""
        return not abs(self.seconds(instrument)) > max(SHARE * self.nsight, SECONDS)


def cases() -> dict[str, Launch]:
    """Return every launch with the default flags, by its configuration's name."""
    found = {}
    for sweep in sweeps():
        for params in sweep.points():
            launch = sweep.launch(params)
            if launch.flags == DEFAULT:
                values = [str(value) for axis, value in params.items() if axis != "flags"]
                found[f"{sweep.name}({', '.join(values)})"] = launch
    return found


def by_suite(launch: Launch, seconds: float) -> list[float | None]:
    """Return median seconds by each instrument, of a launch that takes so many seconds. Errors as `measured`."""
    return [
        None
        if isolated and seconds > LONGEST_ISOLATED
        else float(np.median(measured(launch, isolated=isolated).samples))
        for isolated in INSTRUMENTS.values()
    ]


def launch_all(launches: Sequence[Launch]) -> None:
    """Launch each once, verified, and as often again as Nsight Compute is to count it."""
    device.require()
    stream = device.cuda.Stream()
    for launch in launches:
        with Launcher(launch, rotate=False) as launcher:
            for _ in range(nsight.LAUNCHES):  # one launch was verified before
                launcher(stream.handle)
            stream.synchronize()


def by_nsight(ncu: str, launches: Sequence[Launch]) -> list[float]:
    """Return median seconds of each launch.

    Raises
    ------
    NsightError
        It ended with an error, or profiled other launches.
    """
    command = nsight.command(ncu, [sys.executable, "-m", "experiments.bias", "--launch", *map(str, launches)])
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise nsight.NsightError(f"{ncu} ended with exit code {done.returncode}")
    durations = nsight.durations(done.stdout.splitlines(), [launch.kernel for launch in launches])
    return [float(np.median(each)) for each in durations]


def measure(ncu: str, launches: Mapping[str, Launch]) -> Iterator[Bias]:
    """Yield the bias of each launch. First Nsight Compute: what is missing for it shows before minutes have gone."""
    print("Nsight Compute", file=sys.stderr, flush=True)
    durations = by_nsight(ncu, list(launches.values()))
    with measuring.running():
        for place, (name, launch) in enumerate(launches.items()):
            print(f"{place + 1} of {len(launches)}: {name}", file=sys.stderr, flush=True)
            yield Bias(name, launch.kernel, durations[place], *by_suite(launch, durations[place]))


def read(path: Path) -> tuple[dict[str, Any], list[Bias]]:
    """Return the facts and what was found. Raises as `facts.read`."""
    known, entries = facts.read(path)
    return known, [Bias(**entry) for entry in entries]


def summary(found: Sequence[Bias]) -> str:
    """Return a table with a row a kernel."""
    rows = []
    for kernel in dict.fromkeys(each.kernel for each in found):
        own = [each for each in found if each.kernel == kernel]
        cells = []
        for name in INSTRUMENTS:
            shares = [100 * each.seconds(name) / each.nsight for each in own if getattr(each, name) is not None]
            beyond = sum(not each.within(name) for each in own)
            known = [f"{np.median(shares):+.2f}", f"{min(shares):+.1f} to {max(shares):+.1f}"] if shares else ["", ""]
            cells += [*known, str(beyond)]
        rows.append([f"`{kernel}`", len(own), *cells])
    heads = [f"{_title(name)}: {what}" for name in INSTRUMENTS for what in ("median, %", "range, %", "too far off")]
    return pages.table(rows, ["kernel", "configurations", *heads])


def outside(found: Sequence[Bias]) -> str:
    """Return a table of the configurations that an instrument is too far off for, the worst first."""
    worst = sorted(found, key=lambda each: -np.nanmax([abs(each.seconds(name)) / each.nsight for name in INSTRUMENTS]))
    rows = [
        [
            f"`{each.configuration}`",
            f"{each.nsight * 1e6:.2f}",
            *(_more(each, name) for name in INSTRUMENTS),
        ]
        for each in worst
        if not all(map(each.within, INSTRUMENTS))
    ]
    heads = ["configuration", "Nsight Compute, µs", *(f"{_title(name)}, µs more" for name in INSTRUMENTS)]
    return pages.table(rows, heads)


def _more(found: Bias, instrument: str) -> str:
    if getattr(found, instrument) is None:
        return ""
    return f"{found.seconds(instrument) * 1e6:+.2f}{'' if found.within(instrument) else ' (!)'}"


def _title(instrument: str) -> str:
    return instrument.replace("_", " ")


def page(known: Mapping[str, Any], found: Sequence[Bias]) -> str:
    """Return a page of Markdown."""
    made = pages.made("bias")
    return f"""\
# How far times lie from Nsight Compute's duration

{made}: {facts.sentence(known)}, `{DEFAULT}`.

{_HOW}

{summary(found)}

## Too far off

{outside(found)}
"""


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print, or render what was measured; 2 if there is no GPU or Nsight Compute fails."""
    parser = argparse.ArgumentParser("python -m experiments.bias", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=pages.EVIDENCE / "bias.jsonl", help="what is found, JSON lines")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute's command line tool")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing; tables of what is kept")
    parser.add_argument("--launch", nargs="+", type=Launch.parse, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.launch:
        launch_all(options.launch)
        return 0
    launches = cases()
    if options.render is None:
        gpu = machine.gpu()
        if gpu is None:
            print("no GPU here; --render FILE shows what was measured on one", file=sys.stderr)
            return 2
        if shutil.which(options.ncu) is None:
            print(f"{options.ncu} is not on PATH; install Nsight Compute, or name it with --ncu", file=sys.stderr)
            return 2
        try:
            found = map(asdict, measure(options.ncu, launches))
            jsonl.replace(options.data, chain([{"facts": facts.now(gpu)}], found))
        except nsight.NsightError as error:
            print(f"nothing measured: {error}", file=sys.stderr)
            return 2
    known, kept = read(options.data)
    pages.put(page(known, kept), options.render)
    names = {each.configuration for each in kept}
    lacking = Counter(launch.kernel for name, launch in launches.items() if name not in names)
    pages.tell_missing([f"{count} configurations of {kernel}" for kernel, count in lacking.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
