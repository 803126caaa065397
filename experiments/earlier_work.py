"""Whether what a process did before changes the time of a launch: `python -m experiments.earlier_work`.

Each row forks processes that do something first, then measure one short transpose as the suite does. asv gives each
configuration a process of its own; tools that measure many in one process showed longer times (docs/measurements.md).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.instruments import buffers, device, tools
from benchmarks.instruments.clock import take
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.isolated import Isolated
from benchmarks.instruments.replay import back_to_back
from benchmarks.timed import SAMPLES, kernel_work
from experiments import forks
from gpu_kernels.flags import DEFAULT
from runner import monitor

KERNEL, OTHER = "transpose_read_write_coalesced", "transpose_write_coalesced"
SIDE = 256
PROCESSES = 3
PAGE_LOCKED = 64 << 20

_kept: list[Any] = []


def _experiment(kernel: str, side: int) -> Experiment:
    experiment = Experiment(kernel_work(kernel, "float32", DEFAULT, rows=side, columns=side), in_l2=False)
    with tempfile.TemporaryDirectory() as folder:
        experiment.verify(Path(folder))
    return experiment


def _rotation() -> buffers.Rotation:
    """As many buffers as the other kernel is verified on, filled but not used."""
    size = SIDE * SIDE * np.dtype("float32").itemsize
    return buffers.Rotation(size, size, buffers.pairs_for(2 * size, device.l2_bytes()))


def _stream() -> None:
    stream = device.cuda.Stream()
    memory = device.cuda.mem_alloc(1 << 20)
    device.cuda.memset_d8_async(memory, 0, 1 << 20, stream)
    stream.synchronize()
    _kept.extend([stream, memory])


def _launched(stream: Any) -> None:
    """Launch another kernel on memory of its own, once."""
    work = kernel_work(OTHER, "float32", DEFAULT, rows=SIDE, columns=SIDE)
    output, source = device.allocate(work.output_bytes, work.input_bytes)
    work.launch(int(output), int(source), stream)
    stream.synchronize()
    _kept.extend([stream, output, source])


def _read_back() -> None:
    """Read memory of the device into page-locked memory, as a verification does."""
    memory = device.cuda.mem_alloc(PAGE_LOCKED)
    device.cuda.memcpy_dtoh(device.cuda.pagelocked_empty(PAGE_LOCKED, np.uint8), memory)
    _kept.append(memory)


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
    "another kernel launched once": lambda: _launched(device.cuda.Stream()),
    "buffers that rotate, filled": lambda: _kept.append(_rotation()),
    "page-locked memory, freed": lambda: device.cuda.pagelocked_empty(PAGE_LOCKED, np.uint8),
    "page-locked memory, read into": _read_back,
    "another kernel verified": lambda: _kept.append(_experiment(OTHER, SIDE)),
    "another kernel measured, and freed": _measured,
    "another kernel measured, and kept": _measured_and_kept,
    "the same kernel verified on other memory": lambda: _kept.append(_experiment(KERNEL, 1024)),
}

#: What it does once the memory is allocated and the kernel verified, before its launches are captured.
BETWEEN: dict[str, Callable[[Experiment], Any]] = {
    "nothing": lambda _: None,
    "another kernel launched once, on another stream": lambda _: _launched(device.cuda.Stream()),
    "another kernel launched once, on the same stream": lambda experiment: _launched(experiment.launches.stream),
}

#: All of the first with none of the second, then the rest of the second.
ROWS = [*((name, "nothing") for name in EARLIER), *(("nothing", name) for name in BETWEEN if name != "nothing")]


def _measured_after(before: str, between: str) -> list[float]:
    """Medians in microseconds, in a process of its own: back to back and isolated."""
    device.require()
    EARLIER[before]()
    experiment = _experiment(KERNEL, SIDE)
    BETWEEN[between](experiment)
    return [
        statistics.median(take(instrument(experiment.launches), SAMPLES)) * 1e6
        for instrument in (back_to_back, Isolated)
    ]


def main() -> int:
    """Measure and print the table."""
    if device.cuda is None:
        print("needs PyCUDA and a driver", file=sys.stderr)
        return 2
    rows = []
    with monitor.running():
        for row in ROWS:
            found = [forks.call(_measured_after, *row) for _ in range(PROCESSES)]
            rows.append([*row, *(", ".join(f"{value:.3f}" for value in column) for column in zip(*found, strict=True))])
    heads = ["before", "between", "back to back, µs a process", "isolated, µs a process"]
    print(tabulate(rows, headers=heads, tablefmt="github", disable_numparse=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
