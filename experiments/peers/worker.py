"""The process that measures launches by one method: how it is started, and what it does.

`python -m experiments.peers.worker METHOD ...` prints a JSON line for each launch.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TextIO

from experiments import forks
from experiments.peers.methods import METHODS
from gpu_kernels import build
from gpu_kernels.sweep import Launch
from kernelwatch.instrument import device, machine, measuring
from kernelwatch.project import ROOT


def command(method: str, launches: Sequence[Launch], *, defaults: bool) -> list[str]:
    """Return the command line that starts such a process now, with the method's own settings or its `defaults`."""
    words = [sys.executable, "-m", "experiments.peers.worker", method, *map(str, launches)]
    words += ["--spawned", repr(time.time())]
    return [*words, "--defaults"] if defaults else words


def attend(command: Sequence[str], timeout: float) -> tuple[list[str], str | None]:
    """Run a process; return the lines of its standard output, and what went wrong, if anything.

    After `timeout` seconds it is killed with all that it started. What it had printed counts.
    """
    if shutil.which(command[0]) is None:
        return [], f"{command[0]} is not on PATH"
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, text=True, errors="replace", **pipes) as process:
        problem = None
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # ncu's child too
            out, err = process.communicate()
            problem = f"took longer than {timeout:g} s"
        if problem is None and process.returncode != 0:
            said = err.strip().splitlines() or ["nothing on standard error"]
            problem = f"exit code {process.returncode}: {said[-1]}"
    return out.splitlines(), problem


def _take_stdout() -> TextIO:
    """Return standard output for the results alone: what libraries print there, in C too, goes to standard error."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return results


def _lines(method: str, launches: Sequence[Launch], began: float, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Measure in this process, which began at that time; the suite's have no device of their own."""
    if not METHODS[method].monitored:
        device.require()
    gpu = machine.gpu()
    assert gpu is not None, "the comparison looks for one first"
    start = time.time() - began
    for one, samples, seconds in METHODS[method].measure(launches, **settings):
        cubin = build.cubin(one.kernel, one.dtype, one.flags, arch=gpu.arch)
        found = {"launch": str(one), "samples": samples, "seconds": seconds, "start": start}
        yield {**found, "cubin": cubin.sha256}


def _listed(*arguments: Any) -> list[dict[str, Any]]:
    return list(_lines(*arguments))


def _measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure all launches in this process, or each in one forked from it, which has done the imports: as asv does."""
    method = METHODS[options.method]
    for name in method.needs:
        pkgutil.resolve_name(name)
    settings = {} if options.defaults else method.settings
    if not method.processes:
        yield from _lines(options.method, options.launches, options.spawned, settings)
        return
    with measuring.running() if method.monitored else nullcontext():
        for one in options.launches:
            yield from forks.call(_listed, options.method, [one], time.time(), settings)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser("python -m experiments.peers.worker", description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("launches", nargs="+", type=Launch.parse)
    parser.add_argument("--spawned", type=float, required=True, help="seconds since the epoch")
    parser.add_argument("--defaults", action="store_true")
    options = parser.parse_args(words)
    with _take_stdout() as results:
        try:
            for line in _measure(options):
                print(json.dumps(line), file=results, flush=True)
        except Exception as error:  # noqa: BLE001 -- other people's tools: whatever they raise becomes a row
            traceback.print_exc()
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=results, flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
