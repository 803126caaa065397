"""Times of launches by other tools, each called as its users do; requirements/peers.txt has them."""

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

#: Seconds that a launch may take a tool.
LIMIT = 60.0


def _cupyx(launch: Launch) -> Sequence[float]:
    """Events around one launch, the host waiting for each."""
    import cupy  # noqa: PLC0415 -- an optional peer, like those below
    from cupyx.profiler import benchmark  # noqa: PLC0415

    with ExitStack() as stack:
        start = Launcher(launch, stack, rotate=True).on_stream()
        stream = cupy.cuda.get_current_stream().ptr  # asked once: between the events, the host's time counts
        return list(benchmark(lambda: start(stream), n_repeat=50).gpu_times[0])


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
    return list(state.samples)


#: By the names that tables and the command line have: (launch) -> samples in seconds.
TOOLS: dict[str, Callable[[Launch], Sequence[float]]] = {
    "nvbench": _nvbench,
    "cupyx": _cupyx,
    "do_bench": _triton,
}


def _samples(tool: str, launch: Launch) -> Sequence[float]:
    return TOOLS[tool](launch)


def samples(tool: str, launch: Launch) -> Sequence[float]:
    """Return a tool's seconds of a launch; of one that is missing or fails none, and a line says why.

    A process of its own does nothing else: earlier work changes times.
    """
    try:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.apply_async(_samples, [tool, launch]).get(LIMIT)
    except Exception as error:  # noqa: BLE001 -- other people's tools: whatever they raise becomes a line
        print(f"{tool}, {launch}: {type(error).__name__}: {error}", file=sys.stderr)
        return []
