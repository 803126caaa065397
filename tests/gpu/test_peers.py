"""The tools of the comparison, each on the device."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from experiments import peers
from experiments.tools import TOOLS
from kernelwatch.instrument import measuring
from kernelwatch.kernel import Launch

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", TOOLS)
def test_tools(name: str) -> None:
    """Each verifies its launches and gives positive times."""
    tool = TOOLS[name]
    for module in tool.needs:
        pytest.importorskip(module)
    launch = Launch(peers.KERNELS[-1], arguments={"rows": 256, "columns": 256})
    with measuring.running() if tool.monitored else nullcontext():
        samples = peers.timed(tool, launch)  # not forked: this process has initialised CUDA
    assert len(samples) >= (1 if name == "nvbench-batch" else 10)
    assert all(1e-7 < sample < 1e-2 for sample in samples)
