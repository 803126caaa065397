"""Where to put the events: inside the replayed graph, around it, or around it after a replay that keeps it busy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.instruments import device
from benchmarks.instruments.experiment import Experiment
from benchmarks.instruments.replay import Replay, back_to_back
from benchmarks.timed import kernel_work

KERNELS = ["transpose_read_coalesced", "transpose_write_coalesced", "transpose_read_write_coalesced"]
SIDES = [256, 1024, 4096, 12800]
SAMPLES = 20


def _inside(replay: Replay, _: Any) -> float:
    replay()
    return replay.milliseconds()


def _around(replay: Replay, stream: Any, *, busy: bool) -> float:
    start, stop = device.cuda.Event(), device.cuda.Event()
    if busy:
        replay()
    start.record(stream)
    replay()
    stop.record(stream)
    stop.synchronize()
    return float(start.time_till(stop))


WAYS: dict[str, Callable[[Replay, Any], float]] = {
    "inside": _inside,
    "around": partial(_around, busy=False),
    "around, busy before": partial(_around, busy=True),
}


def measure(kernel: str, side: int) -> list[str]:
    """One row: microseconds a launch and relative standard deviation in percent, each way."""
    work = kernel_work(kernel, "float32", "-Xptxas -O3", rows=side, columns=side)
    cycle = Experiment(work, in_l2=False).launches
    replay, stream = back_to_back(cycle), cycle.stream
    replay()  # the first replay of a graph also brings it onto the device
    replay.milliseconds()
    cells = []
    for way in WAYS.values():
        samples = np.array([way(replay, stream) for _ in range(SAMPLES)]) / replay.launches * 1e3
        cells.append(f"{np.median(samples):.3f} ({samples.std() / samples.mean() * 100:.2f} %)")
    return [kernel, str(side), str(replay.launches), *cells]


def main() -> None:
    """Print the table."""
    device.require()
    rows = [measure(kernel, side) for side in SIDES for kernel in KERNELS]
    print(tabulate(rows, headers=["kernel", "side", "launches", *WAYS], tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
