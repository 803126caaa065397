"""Whether what a process did before changes the time of a launch: `python -m experiments.earlier_work`.

Each row forks processes that do something first, then measure one short transpose as the suite does. asv gives each
configuration a process of its own; tools that measure many in one process showed longer times (docs/measurements.md).
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmarks.instruments import device, tools
from benchmarks.instruments.clock import take
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.isolated import Isolated
from benchmarks.instruments.replay import back_to_back
from benchmarks.timed import SAMPLES, kernel_work
from gpu_kernels.flags import DEFAULT
from runner import monitor

KERNEL, OTHER = "transpose_read_write_coalesced", "transpose_write_coalesced"
SIDE = 256
PROCESSES = 3

_kept: list[Any] = []


def _experiment(kernel: str, side: int) -> Experiment:
    experiment = Experiment(kernel_work(kernel, "float32", DEFAULT, rows=side, columns=side), in_l2=False)
    with tempfile.TemporaryDirectory() as folder:
        experiment.verify(Path(folder))
    return experiment


def _stream() -> None:
    stream = device.cuda.Stream()
    memory = device.cuda.mem_alloc(1 << 20)
    device.cuda.memset_d8_async(memory, 0, 1 << 20, stream)
    stream.synchronize()
    _kept.extend([stream, memory])


def _measured() -> None:
    take(back_to_back(_experiment(OTHER, SIDE).launches), SAMPLES)


def _measured_and_kept() -> None:
    experiment = _experiment(OTHER, SIDE)
    replay = back_to_back(experiment.launches)
    take(replay, SAMPLES)
    _kept.extend([experiment, replay])


#: What a process does first.
EARLIER: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a stream, used": _stream,
    "1 GiB allocated": lambda: _kept.append(device.cuda.mem_alloc(1 << 30)),
    "the copy kernel loaded": lambda: _kept.append(tools.copier()),
    "another kernel loaded": lambda: _kept.append(kernel_work(OTHER, "float32", DEFAULT, rows=SIDE, columns=SIDE)),
    "another kernel launched": lambda: _kept.append(_experiment(OTHER, SIDE)),
    "another kernel measured, and freed": _measured,
    "another kernel measured, and kept": _measured_and_kept,
    "the same kernel launched on other memory": lambda: _kept.append(_experiment(KERNEL, 1024)),
}


def _measured_after(name: str) -> list[float]:
    """Medians in microseconds, in a process of its own: back to back and isolated."""
    device.require()
    EARLIER[name]()
    experiment = _experiment(KERNEL, SIDE)
    return [
        statistics.median(take(instrument(experiment.launches), SAMPLES)) * 1e6
        for instrument in (back_to_back, Isolated)
    ]


def _forked(name: str) -> list[float]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as fork:
        return fork.submit(_measured_after, name).result()


def main() -> int:
    """Measure and print the table."""
    if device.cuda is None:
        print("needs PyCUDA and a driver", file=sys.stderr)
        return 2
    rows = []
    with monitor.running():
        for name in EARLIER:
            found = [_forked(name) for _ in range(PROCESSES)]
            rows.append([name, *(", ".join(f"{value:.3f}" for value in column) for column in zip(*found, strict=True))])
    heads = ["before", "back to back, µs a process", "isolated, µs a process"]
    print(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
