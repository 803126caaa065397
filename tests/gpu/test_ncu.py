"""Counters and isolated times against Nsight Compute, for every kernel in every dtype.

Requests, sectors and lines are equal. Requests and sectors of atomics in global memory are equal, too. Up to `MANY`
useful bytes, wavefronts of shared stores are equal. Of shared loads, the device counts up to 5 % fewer or 8 % more. In
larger launches, its counters include replays.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from experiments import bias, nsight
from kernelwatch.counting import launch_counts
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from tests.cases import COVERING_TRANSPOSES
from tests.gpu.cases import LARGE, SMALL, list_all_launches

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not shutil.which("ncu"), reason="ncu is not on PATH; it comes with the CUDA toolkit"),
]

#: Counter -> metric of Nsight Compute.
METRICS = {
    f"{prefix}{kind}_{name}": metric.format(op)
    for kind, op in (("load", "ld"), ("store", "st"), ("atomic", "red"))
    for prefix, name, metric in (
        ("", "requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
        ("", "sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
        ("", "lines", "l1tex__t_set_accesses_pipe_lsu_mem_global_op_{}.sum"),
        ("shared_", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
    )
    if kind != "atomic" or name in ("requests", "sectors")
}

#: Useful bytes of a launch up to which wavefronts agree.
MANY = 16 << 20

#: Kernels whose shared loads ptxas merges: it loads four neighbouring elements of a tile's row as 16 bytes.
MERGED = ("matmul_tiled", "matmul_corner_turning")

#: Seconds by which Nsight Compute's duration may exceed the isolated time, as for an empty kernel (docs/limits.md).
LONGER = 1.2e-6

#: Kernel -> share by which its isolated time may exceed Nsight Compute's duration (docs/limits.md).
FARTHER = {"transpose_serial": 0.08, "transpose_row_per_thread": 0.1, "transpose_read_coalesced": 0.12}


def find_allowed_range(name: str, counted: int, launch: Launch) -> tuple[float, float]:
    if not name.endswith("wavefronts"):
        return counted, counted
    if launch.kernel in MERGED and name == "shared_load_wavefronts":
        return 1, counted
    if registry.find_kernel(launch.kernel).useful_bytes(launch.dtype, **launch.arguments) > MANY:
        return counted, float("inf")
    return (0.95 * counted, 1.08 * counted) if "load" in name else (counted, counted)


def _totals(launch: Launch) -> dict[str, int]:
    return launch_counts.count_launch(launch.kernel, launch.dtype, launch.flags, **launch.arguments).counters.totals()


def test_counters_as_in_nsight_compute(report_share: Callable[[str, int, int], None]) -> None:
    launches = [
        *list_all_launches(SMALL),
        *(Launch.parse(f"{name} rows=4096 columns=4096") for name in COVERING_TRANSPOSES),
    ]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        counting = pool.map(_totals, launches)  # begins at once
        readings = nsight.profile(launches, list(METRICS.values()))
        counts = list(counting)
    wrong, exact = [], 0
    for launch, counted, (chip,) in zip(launches, counts, readings, strict=True):
        for name, metric in METRICS.items():
            least, most = find_allowed_range(name, counted[name], launch)
            if not least <= chip[metric] <= most:
                wrong.append(f"{launch}: {name} {counted[name]}, the chip {chip[metric]:g}")
        exact += all(counted[name] == chip[metric] for name, metric in METRICS.items() if "wavefronts" not in name)
    report_share("launches with the chip's requests, sectors and lines", exact, len(launches))
    assert not wrong, "\n".join(wrong)


def test_isolated_times_as_in_nsight_compute(report_share: Callable[[str, int, int], None]) -> None:
    biases = list(bias.measure_biases(list_all_launches(LARGE)[::2], ["isolated"]))
    print(bias.format_report(biases))
    report_share(
        "isolated times within 5 % or 0.5 µs of Nsight Compute's",
        sum(launch_bias.is_acceptable for launch_bias in biases),
        len(biases),
    )
    most = [100 * FARTHER.get(Launch.parse(launch_bias.launch).kernel, 0) for launch_bias in biases]
    explained = [
        -LONGER <= launch_bias.seconds - launch_bias.nsight < 0 or 0 < launch_bias.percent <= percent
        for launch_bias, percent in zip(biases, most, strict=True)
    ]
    unexplained = [
        launch_bias
        for launch_bias, why in zip(biases, explained, strict=True)
        if not (launch_bias.is_acceptable or why)
    ]
    assert not unexplained, bias.format_report(unexplained)
