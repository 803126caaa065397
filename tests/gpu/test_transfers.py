"""Bulk copies, tiles, another block's shared memory, local memory: the counters of a device by Nsight Compute.

``python -m tests.gpu.test_transfers`` runs each launch once on the device.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from experiments import nsight
from kernelwatch.config.project_root import ROOT
from tests.gpu.driver import Device
from tests.gpu.launches import compile_cubin
from tests.ptxcount.transfers import LAUNCHES, METRICS, compare_counts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not shutil.which("ncu"), reason="ncu is not on PATH; it comes with the CUDA toolkit"),
]


def test_counters(report_share: Callable[[str, int, int], None]) -> None:
    """Requests and sectors of each launch are the device's."""
    metrics = ",".join(metric for names in METRICS.values() for metric in names)
    options = nsight.OPTIONS.replace("--profile-from-start off ", "").split()
    command = ["ncu", *options, "--metrics", metrics, sys.executable, "-m", "tests.gpu.test_transfers"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    names, readings = nsight._parse_readings(done.stdout.splitlines())
    assert names == [launch.kernel for launch in LAUNCHES]
    measured = {
        launch.name: {name: sum(reading[metric] for metric in METRICS[name]) for name in launch.counters}
        for launch, reading in zip(LAUNCHES, readings, strict=True)
    }
    wrong = compare_counts(measured)
    total = sum(len(launch.counters) for launch in LAUNCHES)
    report_share("counters of bulk copies, clusters and local memory equal to the chip's", total - len(wrong), total)
    assert not wrong, "\n".join(wrong)


def main() -> None:
    """Run each launch once on the device."""
    from cuda.bindings import driver

    device = Device(driver)
    for launch in LAUNCHES:
        arguments = launch.copy_arguments()
        device.run(compile_cubin("transfers", "sm_90"), launch.kernel, (launch.blocks, 1, 1), (32, 1, 1), arguments)


if __name__ == "__main__":
    main()
