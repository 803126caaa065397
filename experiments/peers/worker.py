"""A fresh process that measures configurations by one method, and prints a JSON line for each.

`python -m experiments.peers.worker METHOD ...`; started by `experiments.peers`.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO

from benchmarks.instruments import device
from experiments import forks
from experiments.peers import configurations
from experiments.peers.configurations import Configuration
from experiments.peers.methods import METHODS
from gpu_kernels import launch
from runner import monitor


def command(method: str, kernels: Sequence[str], sides: Sequence[int], verified: Path, *, defaults: bool) -> list[str]:
    """The command line that starts such a process now.

    Parameters
    ----------
    method : its name.
    kernels, sides : every kernel is measured at every side.
    verified : folder of notes on what was verified before.
    defaults : with the method's own default settings.
    """
    words = [sys.executable, "-m", "experiments.peers.worker", method, "--verified", str(verified)]
    words += ["--kernels", *kernels, "--sides", *map(str, sides), "--spawned", repr(time.time())]
    return [*words, "--defaults"] if defaults else words


def _take_stdout() -> TextIO:
    """Standard output for the results alone: what libraries print there, in C too, goes to standard error instead."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return results


def _lines(
    method: str, wanted: Sequence[Configuration], began: float, verified: Path, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Measure configurations in this process, which began at that time."""
    launch.context()
    device.require()
    start = time.time() - began
    for measured in METHODS[method].measure(wanted, verified, **settings):
        yield {
            "kernel": measured.configuration.kernel,
            "side": measured.configuration.side,
            "samples": measured.samples,
            "seconds": measured.seconds,
            "start": start,
            "cubin": measured.configuration.cubin(launch.current_arch()).sha256,
        }


def _line(method: str, configuration: Configuration, *rest: Any) -> dict[str, Any]:
    (line,) = _lines(method, [configuration], *rest)
    return line


def _in_forks(
    method: str, wanted: Sequence[Configuration], verified: Path, settings: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Measure each configuration in a process forked from this one, which has done the imports: as asv does."""
    with monitor.running() if METHODS[method].monitored else nullcontext():
        for configuration in wanted:
            yield forks.call(_line, method, configuration, time.time(), verified, settings)


def _measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    method = METHODS[options.method]
    for name in method.needs:
        pkgutil.resolve_name(name)
    wanted = configurations.all_of(options.kernels, options.sides)
    settings = {} if options.defaults else method.settings
    if method.processes_a_configuration:
        return _in_forks(options.method, wanted, options.verified, settings)
    return _lines(options.method, wanted, options.spawned, options.verified, settings)


def _print(line: dict[str, Any], results: TextIO) -> None:
    results.write(json.dumps(line) + "\n")
    results.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser("python -m experiments.peers.worker", description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--kernels", nargs="+", required=True)
    parser.add_argument("--sides", nargs="+", type=int, required=True)
    parser.add_argument("--verified", type=Path, required=True)
    parser.add_argument("--spawned", type=float, required=True, help="seconds since the epoch")
    parser.add_argument("--defaults", action="store_true")
    options = parser.parse_args(words)
    with _take_stdout() as results:
        try:
            for line in _measure(options):
                _print(line, results)
        except Exception as error:  # noqa: BLE001 -- other people's tools: whatever they raise becomes a row
            traceback.print_exc()
            _print({"error": f"{type(error).__name__}: {error}"}, results)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
