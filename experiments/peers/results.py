"""From what a process printed to the entries that are kept."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.peers import nsight
from experiments.peers.configurations import Configuration
from experiments.peers.data import Failure, Reading
from experiments.peers.methods import TRUTH
from experiments.peers.rounds import Task


def entries(
    task: Task, lines: Sequence[str], problem: str | None, wanted: Sequence[Configuration]
) -> Iterator[Reading | Failure]:
    """A Reading of each configuration measured, and a Failure if some are missing.

    Parameters
    ----------
    lines : what the process printed: JSON lines, and Nsight Compute's CSV among them.
    problem : what went wrong with the process itself, if anything.
    wanted : the configurations that it should have measured, in order.
    """
    printed = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    errors = [entry["error"] for entry in printed if "error" in entry]
    measured = [entry for entry in printed if "error" not in entry]
    profiled: dict[Configuration, list[float]] = {}
    if task.method == TRUTH:
        try:
            durations = nsight.durations(lines, [configuration.kernel for configuration in wanted])
            profiled = dict(zip(wanted, durations, strict=True))
        except ValueError as error:
            errors.append(str(error))
    readings = [reading for entry in measured if (reading := _reading(task, entry, profiled)) is not None]
    yield from readings
    if len(readings) < len(wanted):
        reasons = [*errors, *filter(None, [problem]), f"{len(readings)} of {len(wanted)} configurations measured"]
        yield Failure(task.method, task.process, " ".join(reasons[0].split()), task.defaults)


def _reading(task: Task, entry: dict[str, Any], profiled: dict[Configuration, list[float]]) -> Reading | None:
    """What a line says, with the profiler's samples where it has them; None if there are no samples."""
    configuration = Configuration(entry["kernel"], entry["side"])
    samples = profiled.get(configuration, entry["samples"])
    if not samples:
        return None
    return Reading(
        method=task.method,
        process=task.process,
        kernel=configuration.kernel,
        side=configuration.side,
        us=round(statistics.median(samples) * 1e6, 4),
        samples=len(samples),
        seconds=round(entry["seconds"], 3),
        start=round(entry["start"], 3),
        cubin=entry["cubin"],
        defaults=task.defaults,
    )
