"""The methods of the comparison with other tools that need nothing but the suite's own requirements."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from experiments.peers.launcher import KERNELS, square
from experiments.peers.methods import METHODS, TRUTH
from kernelwatch.instrument import measuring

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["suite", "suite_isolated", "events", "host_wall"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_own_methods(name: str, kernel: str) -> None:
    """Each verifies its launches and gives positive times."""
    with measuring.running() if METHODS[name].monitored else nullcontext():
        (found,) = METHODS[name].measure([square(kernel, 256)], **METHODS[name].settings)
    assert len(found.samples) >= 10
    assert all(1e-7 < sample < 1e-2 for sample in found.samples)


def test_launches_to_profile() -> None:
    """Nsight Compute has the samples, not the process that it profiles."""
    (found,) = METHODS[TRUTH].measure([square(KERNELS[0], 256)])
    assert found.samples == []
