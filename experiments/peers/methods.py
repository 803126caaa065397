"""The methods: one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from experiments import nsight
from experiments.peers import tools
from experiments.peers.tools import Measure

#: The method that the others are compared with.
TRUTH = "nsight_compute"


@dataclass(frozen=True)
class Method:
    """One way to time a kernel.

    Parameters
    ----------
    title : str
        What it is called in tables.
    text : str
        What it does, for people.
    measure : Measure
        The function.
    settings : dict
        What bounds its time, where its defaults would take too long for many processes; its defaults if not given.
    needs : tuple of str
        What it imports besides what the suite does, as `pkgutil.resolve_name` takes it.
    processes : int
        Fresh processes that its users start for each configuration; 0: one does for all.
    monitored : bool
        Asks this suite's measuring process, as all runs of this suite do, and has no device of its own.
    """

    title: str
    text: str
    measure: Measure
    settings: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    processes: int = 0
    monitored: bool = False


def _nvbench(samples: int, *more: str) -> dict[str, Any]:
    """Return NVBench's command line where a fixed number of isolated samples ends a measurement."""
    criterion = ["--stopping-criterion", "sample-count", "--target-samples", str(samples)]
    return {"options": [*criterion, "--timeout", "2", *more]}


#: asv's, for suites that set none: 0.1 s of warm-up, then 5 samples a process.
_ASV_SETTINGS = {"warmup_time": 0.01, "repeat": 20}

_NVBENCH = ("cuda.bench:run_all_benchmarks", "cuda.bench.results")
_TRITON = ("torch", "triton.testing:do_bench")

METHODS: dict[str, Method] = {
    TRUTH: Method(
        "Nsight Compute",
        f"`ncu {nsight.OPTIONS}`: the duration of one launch alone, as the chip counts it, caches flushed before it; "
        f"{nsight.LAUNCHES} launches. What the others are compared with.",
        tools.launches_to_profile,
    ),
    "suite": Method(
        "this suite, back to back",
        "A CUDA graph of many launches over buffers that rotate through three times the L2, between two events that "
        "are nodes of the graph; run by asv_runner, with the attributes of every benchmark here.",
        tools.by_asv(tools.SuiteBackToBack),
        processes=2,
        monitored=True,
    ),
    "suite_isolated": Method(
        "this suite, isolated",
        "Launches one at a time in a CUDA graph, the L2 flushed before each, between two kernels that note the GPU's "
        "global timer; run by asv_runner, with the attributes of every benchmark here.",
        tools.by_asv(tools.SuiteIsolated),
        processes=2,
        monitored=True,
    ),
    "nvbench_cold": Method(
        "NVBench, cold",
        "cuda-bench's isolated launches: the L2 flushed, the stream held by a blocking kernel until all is enqueued, "
        "events around the launch.",
        partial(tools.nvbench, batched=False),
        _nvbench(50),
        _NVBENCH,
    ),
    "nvbench_batch": Method(
        "NVBench, batch",
        "cuda-bench's launches back to back between two events, of which it tells the mean; buffers rotate, since it "
        "does not flush. Isolated launches come first and are not counted here, but in the seconds.",
        partial(tools.nvbench, batched=True),
        _nvbench(10, "--batch-target-time", "0.02"),
        _NVBENCH,
    ),
    "cupyx": Method(
        "cupyx.profiler.benchmark",
        "Events around one launch, the host waiting for each; `gpu_times`. Buffers rotate, since it does not flush.",
        tools.cupyx,
        {"n_repeat": 50},
        ("cupyx.profiler:benchmark",),
    ),
    "do_bench": Method(
        "Triton do_bench",
        "256 MiB cleared before each launch, events around the launch, the host running ahead.",
        tools.triton("do_bench", rotate=False),
        needs=_TRITON,
    ),
    "do_bench_cudagraph": Method(
        "Triton do_bench_cudagraph",
        "A CUDA graph of many launches, events around ten replays of it. Buffers rotate, since it does not flush.",
        tools.triton("do_bench_cudagraph", rotate=True),
        needs=_TRITON,
    ),
    "events": Method(
        "asv, a timer of events",
        "asv's `timer` records an event and waits for it, before and after one launch: the host's launch lies in the "
        "interval. Buffers rotate.",
        tools.by_asv(tools.Events),
        _ASV_SETTINGS,
        processes=2,
    ),
    "host_wall": Method(
        "asv, host time and synchronise",
        "asv's own clock around one launch and a synchronisation, as in the suites of other GPU projects (NVIDIA "
        "Warp's, for one). Buffers rotate.",
        tools.by_asv(tools.HostWall),
        _ASV_SETTINGS,
        processes=2,
    ),
}
