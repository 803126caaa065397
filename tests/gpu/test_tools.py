"""The tools of the comparison with others, each on the device."""

from __future__ import annotations

import importlib

import pytest

from experiments import peers
from experiments.tools import TOOLS
from kernelwatch.kernel import Launch

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", TOOLS)
def test_tools(name: str) -> None:
    """Each verifies its launches and gives positive times."""
    for module in TOOLS[name].needs:
        try:
            importlib.import_module(module)
        except ImportError as error:
            pytest.skip(f"{module} is missing: {error}")
    samples = TOOLS[name].samples(Launch(peers.KERNELS[-1], arguments={"rows": 256, "columns": 256}))
    assert len(samples)
    assert all(1e-7 < sample < 1e-2 for sample in samples)
