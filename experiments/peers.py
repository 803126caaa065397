"""Times the same transposes with this suite and with other tools, and compares all with Nsight Compute's durations.

`python -m experiments.peers` needs a GPU, Nsight Compute and `requirements/peers.txt`. A tool that is missing becomes a
line that says so. docs/evidence/peers.md has what was found on an H200.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tabulate import tabulate

from experiments import nsight
from experiments.tools import TOOLS, Tool
from kernelwatch.kernel import Launch

#: What the others are compared with.
TRUTH = "nsight"

KERNELS = ("transpose_read_coalesced", "transpose_write_coalesced", "transpose_read_write_coalesced")

#: Rows and columns.
SIDES = (256, 1024, 4096, 12800)

#: Seconds that one process may take.
LIMIT = 60.0


@dataclass(frozen=True)
class Time:
    """The median of a tool's samples of a launch in one process, in seconds."""

    tool: str
    kernel: str
    side: int
    seconds: float


def forked(tool: Tool, launch: Launch) -> list[float]:
    """Return the samples of a tool in a process that does nothing else: earlier work changes times.

    This process must not have initialised CUDA. Raises TimeoutError where that one takes too long or dies, or else what
    the tool raises.
    """
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            return list(pool.apply_async(tool.samples, [launch]).get(LIMIT))
        except multiprocessing.TimeoutError:
            raise TimeoutError(f"its process died, or took longer than {LIMIT:g} s") from None


def measure(tools: Sequence[str], launches: Mapping[tuple[str, int], Launch]) -> Iterator[Time]:
    """Yield the time of every launch by every tool. One that fails is given up, and a line on stderr says why."""
    for name in tools:
        print(name, file=sys.stderr, flush=True)
        try:
            if name == TRUTH:
                seconds = [median(each) for each in nsight.seconds(list(launches.values()))]
                yield from (Time(name, *place, each) for place, each in zip(launches, seconds, strict=True))
                continue
            for module in TOOLS[name].needs:
                importlib.import_module(module)  # once, before the forks
            for place, launch in launches.items():
                yield Time(name, *place, median(forked(TOOLS[name], launch)))
        except Exception as error:  # noqa: BLE001 -- other people's tools: whatever they raise becomes a line
            print(f"{name} is given up: {type(error).__name__}: {error}", file=sys.stderr)


def report(found: Sequence[Time]) -> str:
    """Return a table with a row a tool: how much longer its times are than Nsight Compute's, a median over kernels."""
    seconds = {(each.tool, each.kernel, each.side): each.seconds for each in found}
    sides = sorted({each.side for each in found})
    rows = []
    for tool in dict.fromkeys(each.tool for each in found):
        cells: list[float | None] = []
        for side in sides:
            mine = [(own, seconds.get((TRUTH, *key[1:]))) for key, own in seconds.items() if key[::2] == (tool, side)]
            shares = [100 * (own / truth - 1) for own, truth in mine if truth]
            cells.append(median(shares) if shares else None)
        rows.append([tool, *cells])
    return str(tabulate(rows, ["tool", *(f"bias at {side}², %" for side in sides)], "github", floatfmt=".2f"))


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 2 without a GPU."""
    parser = argparse.ArgumentParser("python -m experiments.peers", description=__doc__.splitlines()[0])
    names = [TRUTH, *TOOLS]
    parser.add_argument("--tools", nargs="+", default=names, choices=names, help="default: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="what is found, a JSON line each")
    options = parser.parse_args(words)
    sizes = {side: {"rows": side, "columns": side} for side in SIDES}
    launches = {(kernel, side): Launch(kernel, arguments=sizes[side]) for side in SIDES for kernel in KERNELS}
    return nsight.compared("peers", measure(options.tools, launches), report, options.out)


if __name__ == "__main__":
    sys.exit(main())
