"""The methods of the comparison with other tools that need nothing but the suite's own requirements."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.peers.configurations import KERNELS, Configuration
from experiments.peers.methods import METHODS, TRUTH

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["suite", "events", "host_wall"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_own_methods(name: str, kernel: str, tmp_path: Path) -> None:
    """Each verifies its launches and gives positive times."""
    (measured,) = METHODS[name].measure([Configuration(kernel, 256)], tmp_path, **METHODS[name].settings)
    assert len(measured.samples) >= 10
    assert all(1e-7 < sample < 1e-2 for sample in measured.samples)
    assert len(list(tmp_path.iterdir())) == 1, "verified once"


def test_launches_to_profile(tmp_path: Path) -> None:
    """Nsight Compute has the samples, not the process that it profiles."""
    (measured,) = METHODS[TRUTH].measure([Configuration(KERNELS[0], 256)], tmp_path)
    assert measured.samples == []
