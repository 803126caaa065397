"""The methods: one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiments.peers import nsight, through_asv, through_tools
from experiments.peers.measured import Measure

#: The method that the others are compared with.
TRUTH = "nsight_compute"


@dataclass(frozen=True)
class Method:
    """One way to time a kernel.

    Parameters
    ----------
    title : what it is called in tables.
    text : what it does, for people.
    measure : the function.
    settings : what bounds its time, where its defaults would take too long for many processes; none: its defaults.
    needs : what it imports besides what the suite does, as `pkgutil.resolve_name` takes it.
    processes_a_configuration : fresh processes that its users start for each configuration; 0: one does for all.
    monitored : runs beside this suite's monitor, as all runs of this suite do.
    """

    title: str
    text: str
    measure: Measure
    settings: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    processes_a_configuration: int = 0
    monitored: bool = False


def _nvbench(samples: int, *more: str) -> dict[str, Any]:
    """NVBench's command line where a fixed number of isolated samples ends a measurement."""
    criterion = ["--stopping-criterion", "sample-count", "--target-samples", str(samples)]
    return {"options": [*criterion, "--timeout", "2", *more]}


#: asv's, for suites that set none: 0.1 s of warm-up, then 5 samples a process.
_ASV_SETTINGS = {"warmup_time": 0.01, "repeat": 20}

METHODS: dict[str, Method] = {
    TRUTH: Method(
        "Nsight Compute",
        f"`ncu {nsight.OPTIONS}`: the duration of one launch alone, as the chip counts it, caches flushed before it; "
        f"{nsight.LAUNCHES} launches. What the others are compared with.",
        through_tools.profiled,
    ),
    "suite": Method(
        "this suite, back to back",
        "A CUDA graph of many launches over buffers that rotate through three times the L2, between two events that "
        "are nodes of the graph; run by asv_runner, with the attributes of every benchmark here.",
        through_asv.suite_clock,
        processes_a_configuration=2,
        monitored=True,
    ),
    "suite_isolated": Method(
        "this suite, isolated",
        "Launches one at a time in a CUDA graph, the L2 flushed before each, between two kernels that note the GPU's "
        "global timer; run by asv_runner, with the attributes of every benchmark here.",
        through_asv.suite_isolated,
        processes_a_configuration=2,
        monitored=True,
    ),
    "nvbench_cold": Method(
        "NVBench, cold",
        "cuda-bench's isolated launches: the L2 flushed, the stream held by a blocking kernel until all is enqueued, "
        "events around the launch.",
        through_tools.nvbench_cold,
        settings=_nvbench(50),
        needs=("cuda.bench:run_all_benchmarks", "cuda.bench.results"),
    ),
    "nvbench_batch": Method(
        "NVBench, batch",
        "cuda-bench's launches back to back between two events, of which it tells the mean; buffers rotate, since it "
        "does not flush. Isolated launches come first and are not counted here, but in the seconds.",
        through_tools.nvbench_batch,
        settings=_nvbench(10, "--batch-target-time", "0.02"),
        needs=("cuda.bench:run_all_benchmarks", "cuda.bench.results"),
    ),
    "cupyx": Method(
        "cupyx.profiler.benchmark",
        "Events around one launch, the host waiting for each; `gpu_times`. Buffers rotate, since it does not flush.",
        through_tools.cupyx,
        settings={"n_repeat": 50},
        needs=("cupyx.profiler:benchmark",),
    ),
    "do_bench": Method(
        "Triton do_bench",
        "256 MiB cleared before each launch, events around the launch, the host running ahead.",
        through_tools.do_bench,
        needs=("torch", "triton.testing:do_bench"),
    ),
    "do_bench_cudagraph": Method(
        "Triton do_bench_cudagraph",
        "A CUDA graph of many launches, events around ten replays of it. Buffers rotate, since it does not flush.",
        through_tools.do_bench_cudagraph,
        needs=("torch", "triton.testing:do_bench"),
    ),
    "events": Method(
        "asv, a timer of events",
        "asv's `timer` records an event and waits for it, before and after one launch: the host's launch lies in the "
        "interval. Buffers rotate.",
        through_asv.events,
        settings=_ASV_SETTINGS,
        processes_a_configuration=2,
    ),
    "host_wall": Method(
        "asv, host time and synchronise",
        "asv's own clock around one launch and a synchronisation, as in the suites of other GPU projects (NVIDIA "
        "Warp's, for one). Buffers rotate.",
        through_asv.host_wall,
        settings=_ASV_SETTINGS,
        processes_a_configuration=2,
    ),
}
