"""Other benchmark tools of `experiments.peers`, on the device."""

from __future__ import annotations

import pytest

from experiments import peers
from kernelwatch.kernel import Launch

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", peers.TOOLS)
def test_tool_measures_plausible_times(name: str) -> None:
    try:
        samples = peers.TOOLS[name](Launch("transpose_read_write_coalesced", arguments={"rows": 256, "columns": 256}))
    except ImportError as error:
        pytest.skip(f"{error.name} is missing: {error}")
    assert len(samples)
    assert all(1e-7 < sample < 1e-2 for sample in samples)
