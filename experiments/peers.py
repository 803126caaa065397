"""Times the same transposes with this suite and with other tools, and compares all with Nsight Compute's durations.

`python -m experiments.peers` needs a GPU, Nsight Compute and `requirements/peers.txt`. Each tool is called as its users
do. One that is missing becomes a line that says so. docs/evidence/peers.md has what was found on an H200.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from experiments import nsight
from experiments.launcher import Launcher
from kernelwatch.instrument import measuring
from kernelwatch.instrument.alone import measured
from kernelwatch.kernel import Launch

KERNELS = ("transpose_read_coalesced", "transpose_write_coalesced", "transpose_read_write_coalesced")

#: Rows and columns.
SIDES = (256, 1024, 4096, 12800)

#: Seconds that a launch may take a tool.
LIMIT = 60.0


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
    "suite": partial(_suite, isolated=False),
    "suite-isolated": partial(_suite, isolated=True),
    "nvbench": _nvbench,
    "cupyx": _cupyx,
    "do_bench": _triton,
}


def _samples(tool: str, launch: Launch) -> Sequence[float]:
    return TOOLS[tool](launch)


def medians(tool: str, launches: Iterable[Launch]) -> Iterator[float]:
    """Yield a tool's time of each launch, in a process that does nothing else: earlier work changes times."""
    for launch in launches:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            yield median(pool.apply_async(_samples, [tool, launch]).get(LIMIT))


def measure(tools: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield, of each tool and side, how much longer its times are than Nsight Compute's: the median over kernels."""
    for side in SIDES:
        launches = [Launch(kernel, arguments={"rows": side, "columns": side}) for kernel in KERNELS]
        truth = [median(each) for each in nsight.seconds(launches)]
        for tool in tools:
            try:
                found = list(medians(tool, launches))
            except Exception as error:  # noqa: BLE001 -- other people's tools: whatever they raise becomes a line
                print(f"{tool} at {side}²: {type(error).__name__}: {error}", file=sys.stderr)
            else:
                bias = median(100 * (own / one - 1) for own, one in zip(found, truth, strict=True))
                yield {"tool": tool, "side": side, "bias, %": bias, "seconds": found, "nsight": truth}


def report(found: Sequence[dict[str, Any]]) -> str:
    """Return a table with a row a tool and side."""
    heads = ("tool", "side", "bias, %")
    return str(tabulate([[each[head] for head in heads] for each in found], heads, "github", floatfmt=".2f"))


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 2 without a GPU."""
    parser = argparse.ArgumentParser("python -m experiments.peers", description=__doc__.splitlines()[0])
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS, help="default: all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="what is found, a JSON line each")
    options = parser.parse_args(words)
    return nsight.compared("peers", measure(options.tools), report, options.out)


if __name__ == "__main__":
    sys.exit(main())
