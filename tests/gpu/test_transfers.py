"""Counters of bulk copies, half atomics, local and constant memory equal Nsight Compute's; printed as one table.

``python -m tests.gpu.test_transfers transfers`` runs each launch of ``tests/ptxcount/transfers.py`` once on the device,
``... narrow`` those of ``narrow.py``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

import pytest
from tabulate import tabulate

from experiments import nsight
from kernelwatch.config.project_root import ROOT
from tests.gpu.driver import Device
from tests.gpu.launches import compile_cubin
from tests.ptxcount import narrow, transfers
from tests.ptxcount.chip_counters import CounterPair, describe_differences

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not shutil.which("ncu"), reason="ncu is not on PATH; it comes with the CUDA toolkit"),
]

#: CUDA source -> module of its launches, and the memory that they access.
SOURCES = {
    "transfers": (transfers, "bulk copies, clusters and local memory"),
    "narrow": (narrow, "half atomics and constant memory"),
}


def measure_counters(source: str) -> dict[str, dict[str, float]]:
    """Return the device's counters of each launch of a source, by the names of ptxcount."""
    module = SOURCES[source][0]
    metrics = {metric: None for names in module.METRICS.values() for metric in names}
    options = nsight.OPTIONS.replace("--profile-from-start off ", "").split()
    program = [sys.executable, "-m", "tests.gpu.test_transfers", source]
    command = ["ncu", *options, "--metrics", ",".join(metrics), *program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    names, readings = nsight.parse_readings(done.stdout.splitlines())
    assert names == [launch.kernel for launch in module.LAUNCHES]
    return {
        launch.name: {name: sum(reading[metric] for metric in module.METRICS[name]) for name in launch.counters}
        for launch, reading in zip(module.LAUNCHES, readings, strict=True)
    }


def format_pairs(pairs: Sequence[CounterPair]) -> str:
    """Format a row for each kernel and counter: number of launches, number of equal ones, and both sums."""
    row_key, rows = attrgetter("kernel", "counter"), []
    for (kernel, counter), group in groupby(sorted(pairs, key=row_key), row_key):
        members = [*group]
        sums = [sum(getattr(pair, side) for pair in members) for side in ("expectation", "chip")]
        rows.append([kernel, counter, len(members), sum(pair.is_equal for pair in members), *sums])
    headers = ["kernel", "counter", "launches", "equal", "expectation", "chip"]
    return str(tabulate(rows, headers, "github", floatfmt=".0f"))


def test_counters_equal_the_device(
    report_share: Callable[[str, int, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = []
    for source, (module, memory) in SOURCES.items():
        compared = module.compare_counts(measure_counters(source))
        report_share(
            f"counters of {memory} equal to the chip's", sum(pair.is_equal for pair in compared), len(compared)
        )
        pairs += compared
    with capsys.disabled():
        print(f"\n{format_pairs(pairs)}\n")
    wrong = describe_differences(pairs)
    assert not wrong, "\n".join(wrong)


def main(source: str) -> None:
    """Run each launch of a source once on the device."""
    from cuda.bindings import driver

    device = Device(driver)
    for launch in SOURCES[source][0].LAUNCHES:
        grid, block = (launch.blocks, 1, 1), (32, 1, 1)
        device.run(compile_cubin(source, "sm_90"), launch.kernel, grid, block, launch.copy_arguments())


if __name__ == "__main__":
    main(sys.argv[1])
