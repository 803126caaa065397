"""The kept data: JSON lines, the first with the facts of the run, then one a method, launch and process."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments import facts as common
from experiments import nsight
from experiments.peers.launcher import side, square
from experiments.peers.methods import TRUTH, Method
from gpu_kernels import flags, sweep
from gpu_kernels.sweep import Launch
from kernelwatch.instrument import machine

#: Distributions whose versions matter to a method.
DISTRIBUTIONS = ["asv_runner", "cuda-bench", "cuda-bindings", "cupy-cuda13x", "numpy", "pycuda", "torch", "triton"]


@dataclass(frozen=True)
class Task:
    """One process to start: a method, its round, and whether it shows what the method's own defaults cost."""

    method: str
    process: int
    defaults: bool = False

    def __str__(self) -> str:
        return f"{self.method}, {'defaults' if self.defaults else f'process {self.process}'}"


@dataclass(frozen=True)
class MethodTime:
    """What a method says of one launch in one process.

    Parameters
    ----------
    method : str
        Its name.
    process : int
        The round that the process belongs to, from 0.
    kernel, side : str, int
        The launch.
    us : float
        Median of the samples, microseconds a launch.
    samples : int
        How many.
    seconds : float
        Host time that the launch took in the process.
    start : float
        Seconds from the start of the process to a context, imports included.
    cubin : str
        SHA-256 of the machine code.
    defaults : bool
        Measured for `seconds` alone, with the method's own default settings.
    """

    method: str
    process: int
    kernel: str
    side: int
    us: float
    samples: int
    seconds: float
    start: float
    cubin: str
    defaults: bool = False

    @property
    def launch(self) -> Launch:
        """The launch."""
        return square(self.kernel, self.side)


@dataclass(frozen=True)
class Failure:
    """A process that did not measure all it should have, and why."""

    method: str
    process: int
    error: str
    defaults: bool = False


Line = MethodTime | Failure


@dataclass(frozen=True)
class Run:
    """All that a file holds."""

    facts: dict[str, Any]
    times: list[MethodTime]
    failures: list[Failure]

    @cached_property
    def us(self) -> dict[tuple[str, Launch], list[float]]:
        """Method and launch -> microseconds, one a process."""
        found: dict[tuple[str, Launch], list[float]] = {}
        for time in self.times:
            if not time.defaults:
                found.setdefault((time.method, time.launch), []).append(time.us)
        return found


def facts(gpu: machine.Gpu, ncu: str | None, methods: Mapping[str, Method]) -> dict[str, Any]:
    """Return the facts of a run that begins now, with Nsight Compute's version and the methods that take part."""
    versions = {name: _version(name) for name in DISTRIBUTIONS}
    return {
        **common.now(gpu),
        "versions": {"Python": platform.python_version(), "Nsight Compute": ncu, **versions},
        "dtype": sweep.DTYPE,
        "flags": flags.DEFAULT,
        "settings": {name: method.settings for name, method in methods.items()},
        "state": machine.volatile(),
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def entries(task: Task, lines: Sequence[str], problem: str | None, wanted: Sequence[Launch]) -> Iterator[Line]:
    """Yield a MethodTime of each launch that a process measured, and a Failure if some are missing.

    Parameters
    ----------
    task : Task
        What the process was to do.
    lines : sequence of str
        What it printed: JSON lines, and Nsight Compute's CSV among them.
    problem : str, optional
        What went wrong with the process itself, if anything.
    wanted : sequence of Launch
        What it should have measured, in order.
    """
    printed = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    errors = [entry["error"] for entry in printed if "error" in entry]
    profiled: dict[str, list[float]] = {}
    if task.method == TRUTH:
        try:
            durations = nsight.durations(lines, [launch.kernel for launch in wanted])
            profiled = dict(zip(map(str, wanted), durations, strict=True))
        except nsight.NsightError as error:
            errors.append(str(error))
    count = 0
    for entry in printed:
        samples = profiled.get(entry.get("launch", ""), entry.get("samples"))
        if samples:
            count += 1
            yield _time(task, Launch.parse(entry["launch"]), samples, entry)
    if count < len(wanted):
        reasons = [*errors, *filter(None, [problem]), f"{count} of {len(wanted)} launches measured"]
        yield Failure(task.method, task.process, " ".join(reasons[0].split()), task.defaults)


def _time(task: Task, launch: Launch, samples: Sequence[float], entry: Mapping[str, Any]) -> MethodTime:
    return MethodTime(
        method=task.method,
        process=task.process,
        kernel=launch.kernel,
        side=side(launch),
        us=round(statistics.median(samples) * 1e6, 4),
        samples=len(samples),
        seconds=round(entry["seconds"], 3),
        start=round(entry["start"], 3),
        cubin=entry["cubin"],
        defaults=task.defaults,
    )


def read(path: Path) -> Run:
    """Return what a file holds. Raises as `facts.read`."""
    known, found = common.read(path)
    failures = [Failure(**entry) for entry in found if "error" in entry]
    return Run(known, [MethodTime(**entry) for entry in found if "error" not in entry], failures)
