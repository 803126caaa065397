"""Paths through the memory of a GPU, by Nsight Compute's counters. Each group of `path_cases` answers one question.

`python -m experiments.memory_paths FOLDER` prints a table, and writes memory_paths.json into the folder. `--check`
compiles, and counts small launches with ptxcount, without a GPU. Durations are Nsight Compute's, with flushed caches.
Latencies of chains are by the SM's clock, without Nsight Compute. docs/evidence/memory.md already has contended
`cp.reduce.async.bulk`, and `red` compared with `atom`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from tabulate import tabulate

from experiments import nsight
from experiments.path_cases import CHAINS, METRICS, Buffer, guess_latency, list_paths
from experiments.path_device import SOURCE, LaunchDevice, compile_paths
from kernelwatch.config.project_root import ROOT
from ptxcount import Texture
from ptxcount.engine.execute import execute_kernel
from ptxcount.source import cuda_compiler
from ptxcount.util.errors import PtxError

#: Maximum seconds of Nsight Compute for a group.
LIMIT = 60.0


def launch_group(group: str) -> None:
    """Launch each path of a group for the profiler; print its name and time as a line of JSON."""
    from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

    device = LaunchDevice(driver)

    def profile(start: Callable[[], None]) -> None:
        driver.cuProfilerStart()
        start()
        device.synchronize()
        driver.cuProfilerStop()

    for path in list_paths():
        if path.group == group:
            try:
                words = device.launch(path, profile)
            except RuntimeError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            print(json.dumps({"name": path.name, "nanoseconds": words[0]}), flush=True)


def profile_group(group: str, metrics: Sequence[str], mode: str) -> list[dict[str, Any]]:
    """Profile a group with Nsight Compute; return a row for each launch with its guess and the metrics.

    Raises `NsightError` if ncu fails or profiles another number of launches, and `subprocess.TimeoutExpired`.
    """
    program = [sys.executable, "-m", "experiments.memory_paths", "--launch", group]
    options = [*nsight.OPTIONS.split(), "--replay-mode", mode, "--metrics", ",".join([nsight.DURATION, *metrics])]
    done = subprocess.run(
        ["ncu", *options, *program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    lines = done.stdout.splitlines()
    if done.returncode:
        raise nsight.NsightError(f"{group}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    readings = nsight.parse_readings(lines)[1]
    launched = {row["name"]: row for line in lines if line.startswith("{") for row in [json.loads(line)]}
    guesses = {path.name: path.guess for path in list_paths() if path.group == group}
    if len(readings) != len(launched):
        raise nsight.NsightError(
            f"{group}: {len(readings)} launches profiled of {len(launched)}: {done.stderr[-1000:]}"
        )
    facts = [{"group": group, "guess": guesses[name], **row} for name, row in launched.items()]
    return [{**fact, **reading} for fact, reading in zip(facts, readings, strict=True)]


def measure_group(group: str, deadline: float) -> list[dict[str, Any]]:
    """Profile a group; return its rows. If Nsight Compute fails, try kernel replay, and then the duration alone.

    Return no rows if all fail, or after the deadline by `time.monotonic`.
    """
    for mode, metrics in (("application", METRICS[group]), ("kernel", METRICS[group]), ("kernel", [])):
        if time.monotonic() > deadline:
            print(f"{group}: no time is left", file=sys.stderr)
            break
        try:
            return profile_group(group, metrics, mode)
        except (nsight.NsightError, subprocess.TimeoutExpired, ValueError) as error:
            print(f"{group}, replay by {mode}: {error}", file=sys.stderr)
    return []


def measure_chains() -> list[dict[str, Any]]:
    """Measure the latency of each chain of loads in clocks; return a row for each."""
    from cuda.bindings import driver  # noqa: PLC0415 -- an optional package

    device, rows = LaunchDevice(driver), []
    for kind, stride, footprint in CHAINS:
        row = {"group": "translation", "name": f"{kind}, {footprint >> 20:,} MiB by {stride >> 10:,} KiB"}
        clocks = device.measure_chain(kind, stride, footprint)
        rows.append({**row, "guess": guess_latency(footprint), "clocks": clocks})
    return rows


def count_paths(*, small: bool) -> dict[tuple[str, str], dict[str, int]]:
    """Count launches with ptxcount; return their totals by group and name.

    With ``small``, count small forms of all launches; else only the "matrix rows", which are always small.
    """
    totals = {}
    ptx = cuda_compiler.compile_source(SOURCE, "", "sm_90").ptx
    for path in list_paths(small=small):
        if small or path.group == "matrix rows":
            arguments = [make_array(argument) for argument in path.arguments]
            shape = (path.blocks, 1, 1), (path.threads, 1, 1)
            try:
                counters = execute_kernel(ptx, path.kernel, *shape, arguments, unwritten="off", races="off")
                totals[path.group, path.name] = counters.totals()
            except PtxError as error:
                print(f"{path.group}, {path.name}: {error}", file=sys.stderr)
    return totals


def make_array(argument: Any) -> Any:
    """Return an argument for ptxcount: a new array or texture for a `Buffer`, else the argument or a copy."""
    if not isinstance(argument, Buffer):
        return argument if isinstance(argument, np.generic) else argument.copy()
    array = np.zeros(-(-argument.nbytes // 4), np.uint32)
    return Texture(array, layout="rows") if argument.kind == "texture" else array


def main(words: Sequence[str] | None = None) -> int:
    """Measure all groups, or with ``--check`` count small launches; return the exit code: 2 without ncu, else 0."""
    parser = argparse.ArgumentParser("python -m experiments.memory_paths", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=FilePath, nargs="?", help="folder for memory_paths.json")
    parser.add_argument("--check", action="store_true", help="compile and count small launches, without a GPU")
    parser.add_argument("--seconds", type=float, default=200.0, help="start no group after this time (%(default)s)")
    parser.add_argument("--launch", metavar="GROUP", help="launch a group, under Nsight Compute")
    options = parser.parse_args(words)
    if options.launch:
        launch_group(options.launch)
        return 0
    for flags in sorted({path.flags for path in list_paths()}):
        compile_paths(flags)
    if options.check:
        print(f"{len(count_paths(small=True))} of {len(list_paths(small=True))} launches are counted")
        return 0
    if options.folder is None or not shutil.which("ncu"):
        print("a folder and ncu are needed; --check needs neither", file=sys.stderr)
        return 2
    deadline = time.monotonic() + options.seconds
    counted = count_paths(small=False)
    rows: list[dict[str, Any]] = []
    options.folder.mkdir(parents=True, exist_ok=True)
    for group in [*METRICS, "translation"]:
        members = measure_chains() if group == "translation" else measure_group(group, deadline)
        for row in members:
            totals = counted.get((group, row["name"]), {})
            row |= {name: totals[name] for name in totals if name.startswith("shared") and name.endswith("wavefronts")}
        rows += members
        (options.folder / "memory_paths.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"\n{group}\n\n{tabulate(members, 'keys', 'github', floatfmt='.0f')}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
