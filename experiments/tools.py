"""Calls each tool as its users do, to time one launch of the suite: a function each, (launch) -> samples in seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from experiments.launcher import Launcher
from kernelwatch.instrument import measuring
from kernelwatch.instrument.alone import measured
from kernelwatch.kernel import Launch


class Tool(NamedTuple):
    """One way to time a launch: what returns the seconds of each sample, and what it imports besides the suite."""

    samples: Callable[[Launch], Sequence[float]]
    needs: tuple[str, ...] = ()


def _suite(launch: Launch, *, isolated: bool) -> Sequence[float]:
    with measuring.running():
        return measured(launch, isolated=isolated).samples


def _cupyx(launch: Launch) -> Sequence[float]:
    """Events around one launch, the host waiting for each."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    with ExitStack() as stack:
        start = Launcher(launch, stack, rotate=True).on_stream()
        stream = cupy.cuda.get_current_stream().ptr  # asked once: between the events, the host's time counts
        times: Sequence[float] = benchmark(lambda: start(stream), n_repeat=50).gpu_times[0]
    return times


def _triton(launch: Launch) -> Sequence[float]:
    """`do_bench`, which clears the L2 cache before each launch."""
    import torch  # noqa: PLC0415
    from triton.testing import do_bench  # noqa: PLC0415

    with ExitStack() as stack:
        start, stream = Launcher(launch, stack, rotate=False).on_stream(), torch.cuda.current_stream().cuda_stream
        return [1e-3 * milliseconds for milliseconds in do_bench(lambda: start(stream), return_mode="all")]


def _nvbench(launch: Launch) -> Sequence[float]:
    """NVBench's "cold" times: one launch, each time after a flush of the L2 cache."""
    from cuda import bench  # noqa: PLC0415
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415

    def benchmark(state: Any) -> None:
        with ExitStack() as stack:
            start = Launcher(launch, stack, rotate=False).on_stream()
            state.exec(lambda ours: start(ours.get_stream().addressof()), batched=False)

    bench.register(benchmark).set_name(str(launch))
    options = "--quiet --devices 0 --timeout 2 --stopping-criterion sample-count --target-samples 50"
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder, "results.json"))
        bench.run_all_benchmarks(["nvbench", *options.split(), "--jsonbin", results])
        (state,) = BenchmarkResult.from_json(results)[str(launch)]
    if state.is_skipped:
        raise RuntimeError(f"NVBench skipped it: {state.skip_reason}")
    samples: Sequence[float] = state.samples
    return samples


#: By the names that tables and the command line have.
TOOLS = {
    "suite": Tool(partial(_suite, isolated=False)),
    "suite-isolated": Tool(partial(_suite, isolated=True)),
    "nvbench": Tool(_nvbench, ("cuda.bench", "cuda.bench.results")),
    "cupyx": Tool(_cupyx, ("cupyx.profiler",)),
    "do_bench": Tool(_triton, ("torch", "triton.testing")),
}
