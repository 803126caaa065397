"""Where the time of one of asv's processes goes: setup, samples, and the process around them."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from benchmarks.instruments import buffers, clocks, device, experiment, replay, verification
from benchmarks.time_copy import OffsetCopy, StrideCopy
from benchmarks.time_transpose import Transpose
from benchmarks.timed import SAMPLES, _Timed
from experiments.spent import timed
from gpu_kernels import launch
from runner import monitor

CASES: list[tuple[type[_Timed], tuple[Any, ...]]] = [
    (Transpose, ("transpose_read_coalesced", "12800x12800", "complex128", "-Xptxas -O3")),
    (Transpose, ("transpose_read_coalesced", "12800x12800", "float32", "-Xptxas -O3")),
    (Transpose, ("transpose_read_coalesced", "4096x4096", "float32", "-Xptxas -O3")),
    (Transpose, ("transpose_read_coalesced", "256x256", "int8", "-Xptxas -O3")),
    (StrideCopy, (32, 4194304, "complex128", "-Xptxas -O3")),
    (OffsetCopy, (1, 67108864, "complex128", "-Xptxas -O3")),
]

#: Functions whose time is reported: where they live, their name, what they do.
PARTS = [
    (launch, "context", "context"),
    (buffers.Rotation, "__init__", "buffers"),
    (experiment, "_verify", "verification"),
    (buffers.Rotation, "host_input", "of it the input on the host"),
    (buffers.Rotation, "read_output", "of it reading back"),
    (verification, "_compare", "of it comparing"),
    (replay, "Replay", "capture"),
    (clocks, "now", "clocks"),
]


def child(benchmark: _Timed, params: tuple[Any, ...]) -> None:
    """Set up and take samples as asv does, and print where the time went."""
    spent: dict[str, float] = {}
    for owner, name, part in PARTS:
        setattr(owner, name, timed(getattr(owner, name), spent, part))
    start = time.perf_counter()
    folder = tempfile.mkdtemp()
    benchmark.setup(folder, *params)
    ready = time.perf_counter()
    for _ in range(SAMPLES):
        benchmark.sample(folder, *params)
    parts = ", ".join(f"{part} {spent[part]:.3f}" for _, _, part in PARTS if part in spent)
    print(f"  setup {ready - start:.3f} s ({parts}), {SAMPLES} samples {time.perf_counter() - ready:.3f} s", flush=True)


def main() -> None:
    """Fork a process for each case, as asv's fork server does. CUDA must not be initialised here."""
    assert device.cuda is not None, "needs PyCUDA and a driver"
    with monitor.running():
        for benchmark, params in CASES:
            print(f"{benchmark.__name__} {params}", flush=True)
            start = time.perf_counter()
            pid = os.fork()
            if pid == 0:
                child(benchmark(), params)
                os._exit(0)
            os.waitpid(pid, 0)
            print(f"  process {time.perf_counter() - start:.3f} s", flush=True)


if __name__ == "__main__":
    main()
