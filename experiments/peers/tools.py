"""Calls each tool as its users do, to time one launch of the suite."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from asv_runner.benchmarks.time import TimeBenchmark

from experiments import nsight
from experiments.peers.launcher import Launcher
from gpu_kernels.sweep import Launch
from kernelwatch.asv.timed import Timed, measured
from kernelwatch.instrument import device
from kernelwatch.instrument.clock import Readings


class Measurement(NamedTuple):
    """What a tool found of a launch in one process: samples in seconds a launch, and seconds of the host's in all."""

    launch: Launch
    samples: list[float]
    seconds: float


#: (launches, settings by name) -> a Measurement each.
Measure = Callable[..., Iterator[Measurement]]


def one_by_one(samples_of: Callable[..., Sequence[float]]) -> Measure:
    """Return the Measure that a function (launch, settings by name) -> samples in seconds makes."""

    def measure(launches: Sequence[Launch], **settings: Any) -> Iterator[Measurement]:
        for launch in launches:
            begin = time.perf_counter()
            samples = samples_of(launch, **settings)
            yield Measurement(launch, list(map(float, samples)), time.perf_counter() - begin)

    return measure


class SuiteBackToBack:
    """One launch as this suite measures it: replays of a graph."""

    number, repeat, warmup_time = Timed.number, Timed.repeat, Timed.warmup_time
    isolated = False

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.timer = Readings()

    def setup(self) -> None:
        """Measure, unless samples are left."""
        if self.timer.is_used_up:
            self.timer.add(measured(self._launch, isolated=self.isolated).samples)
        self.timer.reset()

    def time_launch(self) -> None:
        """The benchmark that asv runs."""


class SuiteIsolated(SuiteBackToBack):
    """The same, of launches by themselves."""

    isolated = True


class OneLaunch:
    """A suite without an instrument of its own: one launch a sample. asv's defaults, unless settings say otherwise."""

    def __init__(self, launch: Launch) -> None:
        self._launcher = Launcher(launch, rotate=True)
        self._stream = device.cuda.Stream()
        self._handle = self._stream.handle

    def setup(self) -> None:
        """Do nothing; but that there is a setup makes asv time calls singly, as in suites that prepare arrays."""

    def time_launch(self) -> None:
        """The benchmark that asv runs."""
        self._launcher(self._handle)


class HostWall(OneLaunch):
    """asv's own clock around a launch and a synchronisation."""

    def time_launch(self) -> None:
        """The benchmark that asv runs."""
        super().time_launch()
        device.cuda.Context.synchronize()


class Events(OneLaunch):
    """A timer that records an event and waits for it, before and after the launch."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._first = self._event()

    def _event(self) -> Any:
        event = device.cuda.Event()
        event.record(self._stream)
        event.synchronize()
        return event

    def timer(self) -> float:
        """Return seconds from the first event to one recorded now."""
        return float(self._first.time_till(self._event())) * 1e-3


def by_asv(suite_of: Callable[[Launch], Any]) -> Measure:
    """Return what asv measures in one process of suites, each made of a launch.

    A suite has the benchmark `time_launch`. Settings become its attributes: repeat, warmup_time and so
    on. The Measure raises RuntimeError if asv skips a suite.
    """

    @one_by_one
    def measure(launch: Launch, **settings: Any) -> list[float]:
        suite = suite_of(launch)
        for name, value in settings.items():
            setattr(suite, name, value)
        benchmark = TimeBenchmark(type(suite).__name__, suite.time_launch, [suite])
        benchmark.set_cache(None)
        if benchmark.do_setup():
            raise RuntimeError("asv skipped it; its message above says why")
        return list(benchmark.do_run()["samples"])

    return measure


@one_by_one
def cupyx(launch: Launch, **settings: Any) -> Sequence[float]:
    """Call `cupyx.profiler.benchmark`."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    launcher = Launcher(launch, rotate=True)
    stream = cupy.cuda.get_current_stream().ptr  # asked once: between the events, the host's time counts
    times: Sequence[float] = benchmark(lambda: launcher(stream), **settings).gpu_times[0]
    return times


def triton(name: str, *, rotate: bool) -> Measure:
    """Return a function of `triton.testing`; buffers rotate for one that does not clear the L2."""

    @one_by_one
    def measure(launch: Launch, **settings: Any) -> list[float]:
        import torch  # noqa: PLC0415
        from triton import testing  # noqa: PLC0415

        launcher = Launcher(launch, rotate=rotate)

        def start() -> None:
            launcher(torch.cuda.current_stream().cuda_stream)  # asked each time: a captured graph has its own

        return [milliseconds * 1e-3 for milliseconds in getattr(testing, name)(start, return_mode="all", **settings)]

    return measure


def nvbench(launches: Sequence[Launch], *, batched: bool, options: Sequence[str] = ()) -> Iterator[Measurement]:
    """Let NVBench launch: by itself, each time after a flush of the L2, or back to back.

    It runs all that are registered, once a process. Of launches back to back, it reports only the mean.

    Raises
    ------
    RuntimeError
        NVBench skipped one.
    """
    from cuda import bench  # noqa: PLC0415
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415

    seconds: dict[Launch, float] = {}

    def register(launch: Launch) -> None:
        def benchmark(state: Any) -> None:
            begin = time.perf_counter()
            launcher = Launcher(launch, rotate=batched)
            state.exec(lambda ours: launcher(ours.get_stream().addressof()), batched=batched)
            seconds[launch] = time.perf_counter() - begin

        bench.register(benchmark).set_name(str(launch))

    for launch in launches:
        register(launch)
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder, "results.json"))
        bench.run_all_benchmarks(["nvbench", "--quiet", "--devices", "0", "--jsonbin", results, *options])
        found = BenchmarkResult.from_json(results)
    for launch in launches:
        (state,) = found[str(launch)]
        if state.is_skipped:
            raise RuntimeError(f"NVBench skipped {launch}: {state.skip_reason}")
        samples = [state.summaries["nv/batch/time/gpu/mean"].value] if batched else state.samples
        yield Measurement(launch, list(map(float, samples)), seconds[launch])


@one_by_one
def launches_to_profile(launch: Launch) -> list[float]:
    """Launch for Nsight Compute to profile; it is the one that has the samples."""
    launcher = Launcher(launch, rotate=False)
    stream = device.cuda.Stream()
    for _ in range(nsight.LAUNCHES):
        launcher(stream.handle)
    stream.synchronize()
    return []
