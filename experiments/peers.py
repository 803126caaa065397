"""Times of launches by other tools, each called as its users call it; requirements/peers.txt lists the tools."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from experiments.launcher import Launcher
from kernelwatch.kernel import Launch

#: Maximum seconds of a tool for a launch.
LIMIT = 60.0


def _time_with_cupyx(launch: Launch) -> Sequence[float]:
    """Return times by CUDA events around each launch, in seconds. The host waits for each launch."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    with ExitStack() as stack:
        start = Launcher(launch, stack, rotate=True).make_starter()
        stream = cupy.cuda.get_current_stream().ptr  # once: between the events, the host's time counts
        return list(benchmark(lambda: start(stream), n_repeat=50).gpu_times[0])


def _time_with_triton(launch: Launch) -> Sequence[float]:
    """Return the times of Triton's `do_bench`, in seconds. It clears the L2 cache before each launch."""
    import torch  # noqa: PLC0415
    from triton.testing import do_bench  # noqa: PLC0415

    with ExitStack() as stack:
        start, stream = Launcher(launch, stack, rotate=False).make_starter(), torch.cuda.current_stream().cuda_stream
        return [1e-3 * milliseconds for milliseconds in do_bench(lambda: start(stream), return_mode="all")]


def _time_with_nvbench(launch: Launch) -> Sequence[float]:
    """Return NVBench's "cold" times, in seconds. It flushes the L2 cache before each launch."""
    from cuda import bench  # noqa: PLC0415
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415

    def benchmark(state: Any) -> None:
        with ExitStack() as stack:
            start = Launcher(launch, stack, rotate=False).make_starter()
            state.exec(lambda launch_state: start(launch_state.get_stream().addressof()), batched=False)

    bench.register(benchmark).set_name(str(launch))
    options = "--quiet --devices 0 --timeout 2 --stopping-criterion sample-count --target-samples 50"
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder, "results.json"))
        bench.run_all_benchmarks(["nvbench", *options.split(), "--jsonbin", results])
        (state,) = BenchmarkResult.from_json(results)[str(launch)]
    if state.is_skipped:
        raise RuntimeError(f"NVBench skipped it: {state.skip_reason}")
    return list(state.samples)


#: Name of a tool in tables and on the command line -> a function that times a launch, and returns samples in seconds.
TOOLS: dict[str, Callable[[Launch], Sequence[float]]] = {
    "nvbench": _time_with_nvbench,
    "cupyx": _time_with_cupyx,
    "do_bench": _time_with_triton,
}


def _take_samples(tool: str, launch: Launch) -> Sequence[float]:
    return TOOLS[tool](launch)


def take_samples(tool: str, launch: Launch) -> Sequence[float]:
    """Return a tool's times of a launch, in seconds. If the tool is missing or fails, print a line and return none.

    The tool runs in a new process, because earlier work of a process changes times.
    """
    try:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.apply_async(_take_samples, [tool, launch]).get(LIMIT)
    except Exception as error:  # noqa: BLE001 -- any error of another tool becomes a line
        print(f"{tool}, {launch}: {type(error).__name__}: {error}", file=sys.stderr)
        return []
