"""Calls each tool as its users do, to time one launch of the suite: a function each, (launch) -> samples in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.launcher import Launcher
from kernelwatch.asv.timed import measured
from kernelwatch.kernel import Launch


@dataclass(frozen=True)
class Tool:
    """One way to time a launch."""

    #: Launch -> seconds of each sample.
    samples: Callable[[Launch], Sequence[float]]
    #: What it imports besides what the suite does.
    needs: tuple[str, ...] = ()
    #: Whether it asks the suite's measuring process, and has no device of its own.
    monitored: bool = False


def _suite(launch: Launch, *, isolated: bool) -> Sequence[float]:
    return measured(launch, isolated=isolated).samples


def _cupyx(launch: Launch) -> Sequence[float]:
    """Events around one launch, the host waiting for each."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    launcher = Launcher(launch, rotate=True)
    stream = cupy.cuda.get_current_stream().ptr  # asked once: between the events, the host's time counts
    times: Sequence[float] = benchmark(lambda: launcher(stream), n_repeat=50).gpu_times[0]
    return times


def _triton(name: str, launch: Launch, *, rotate: bool) -> Sequence[float]:
    """`do_bench` clears the L2 before each launch; `do_bench_cudagraph` does not, so buffers rotate."""
    import torch  # noqa: PLC0415
    from triton import testing  # noqa: PLC0415

    launcher = Launcher(launch, rotate=rotate)

    def start() -> None:
        launcher(torch.cuda.current_stream().cuda_stream)  # asked each time: a captured graph has its own

    return [milliseconds * 1e-3 for milliseconds in getattr(testing, name)(start, return_mode="all")]


def _nvbench(launch: Launch, *, batched: bool) -> Sequence[float]:
    """By itself, each time after a flush of the L2; or back to back, of which NVBench reports only the mean."""
    from cuda import bench  # noqa: PLC0415
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415

    def benchmark(state: Any) -> None:
        launcher = Launcher(launch, rotate=batched)
        state.exec(lambda ours: launcher(ours.get_stream().addressof()), batched=batched)

    bench.register(benchmark).set_name(str(launch))
    options = (
        f"--quiet --devices 0 --stopping-criterion sample-count --target-samples {10 if batched else 50} --timeout 2"
    )
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder, "results.json"))
        bench.run_all_benchmarks(["nvbench", *options.split(), "--batch-target-time", "0.02", "--jsonbin", results])
        (state,) = BenchmarkResult.from_json(results)[str(launch)]
    if state.is_skipped:
        raise RuntimeError(f"NVBench skipped it: {state.skip_reason}")
    return [state.summaries["nv/batch/time/gpu/mean"].value] if batched else state.samples


_NVBENCH, _TRITON = ("cuda.bench", "cuda.bench.results"), ("torch", "triton.testing")

#: By the names that tables and the command line have.
TOOLS = {
    "suite": Tool(partial(_suite, isolated=False), monitored=True),
    "suite-isolated": Tool(partial(_suite, isolated=True), monitored=True),
    "nvbench-cold": Tool(partial(_nvbench, batched=False), _NVBENCH),
    "nvbench-batch": Tool(partial(_nvbench, batched=True), _NVBENCH),
    "cupyx": Tool(_cupyx, ("cupyx.profiler",)),
    "do_bench": Tool(partial(_triton, "do_bench", rotate=False), _TRITON),
    "do_bench_cudagraph": Tool(partial(_triton, "do_bench_cudagraph", rotate=True), _TRITON),
}
