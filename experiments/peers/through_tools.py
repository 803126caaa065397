"""The methods that are other tools' own: each is called as its users call it, with a launch of ours inside."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.instruments import device
from experiments.peers import nsight
from experiments.peers.configurations import Configuration
from experiments.peers.launcher import Launcher
from experiments.peers.measured import Measured, one_by_one


@one_by_one
def cupyx(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """`cupyx.profiler.benchmark`."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    launcher = Launcher(configuration, rotate=True, verified=verified)
    stream = cupy.cuda.get_current_stream().ptr  # asked once: between the events, the host's time counts

    def launch() -> None:
        launcher(stream)

    return list(map(float, benchmark(launch, **settings).gpu_times[0]))


@one_by_one
def do_bench(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """`triton.testing.do_bench`, which clears 256 MiB before each launch."""
    from triton import testing  # noqa: PLC0415

    return _triton(testing.do_bench, Launcher(configuration, rotate=False, verified=verified), settings)


@one_by_one
def do_bench_cudagraph(configuration: Configuration, verified: Path, **settings: Any) -> list[float]:
    """`triton.testing.do_bench_cudagraph`, which clears nothing."""
    from triton import testing  # noqa: PLC0415

    return _triton(testing.do_bench_cudagraph, Launcher(configuration, rotate=True, verified=verified), settings)


def _triton(bench: Callable[..., Sequence[float]], launcher: Launcher, settings: dict[str, Any]) -> list[float]:
    import torch  # noqa: PLC0415

    def launch() -> None:
        launcher(torch.cuda.current_stream().cuda_stream)  # asked each time: a captured graph has its own

    return [milliseconds * 1e-3 for milliseconds in bench(launch, return_mode="all", **settings)]


def nvbench_cold(configurations: Sequence[Configuration], verified: Path, **settings: Any) -> Iterator[Measured]:
    """NVBench's isolated launches, each after a flush of the L2."""
    for index, state, seconds in _nvbench(configurations, verified, batched=False, **settings):
        yield Measured(configurations[index], list(map(float, state.samples)), seconds)


def nvbench_batch(configurations: Sequence[Configuration], verified: Path, **settings: Any) -> Iterator[Measured]:
    """NVBench's launches back to back, after the isolated ones that it insists on; their mean is all it tells."""
    for index, state, seconds in _nvbench(configurations, verified, batched=True, **settings):
        yield Measured(configurations[index], [float(state.summaries["nv/batch/time/gpu/mean"].value)], seconds)


def _nvbench(
    configurations: Sequence[Configuration], verified: Path, *, batched: bool, options: Sequence[str] = ()
) -> Iterator[tuple[int, Any, float]]:
    """Index, results and seconds of each configuration; NVBench runs all that are registered, once a process.

    Raises
    ------
    RuntimeError : NVBench skipped one.
    """
    from cuda import bench  # noqa: PLC0415
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415

    seconds: dict[int, float] = {}

    def register(index: int, configuration: Configuration) -> None:
        def benchmark(state: Any) -> None:
            begin = time.perf_counter()
            launcher = Launcher(configuration, rotate=batched, verified=verified)
            state.exec(lambda launch: launcher(launch.get_stream().addressof()), batched=batched)
            seconds[index] = time.perf_counter() - begin

        bench.register(benchmark).set_name(str(configuration))

    for index, configuration in enumerate(configurations):
        register(index, configuration)
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder, "results.json"))
        bench.run_all_benchmarks(["nvbench", "--quiet", "--devices", "0", "--jsonbin", results, *options])
        found = BenchmarkResult.from_json(results)
    for index, configuration in enumerate(configurations):
        (state,) = found[str(configuration)]
        if state.is_skipped:
            raise RuntimeError(f"NVBench skipped {configuration}: {state.skip_reason}")
        yield index, state, seconds[index]


@one_by_one
def profiled(configuration: Configuration, verified: Path) -> list[float]:
    """Launches for Nsight Compute to profile; it is the one that has the samples."""
    launcher = Launcher(configuration, rotate=False, verified=verified)
    stream = device.cuda.Stream()
    for _ in range(nsight.LAUNCHES):
        launcher(stream.handle)
    stream.synchronize()
    return []
