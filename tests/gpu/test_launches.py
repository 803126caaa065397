"""Textures, bulk copies, clusters, cooperative grids and everyday kernels: outputs of a device and of the executor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.driver import Device
from tests.gpu.launches import LAUNCHES, One, results

pytestmark = pytest.mark.gpu

#: The share of the values that may differ: the order of atomics, places of coordinates that are normalized by an extent
#: that is no power of two, and weights of eight neighbours (docs/evidence/counter.md).
DIFFER = {
    "compacted": 1.0,
    **{one.name: 0.002 for one in LAUNCHES if "linear" in one.name and "19" in one.name},
    **{one.name: 0.08 for one in LAUNCHES if one.name.startswith("fetch3") and "linear" in one.name},
}


@pytest.fixture(scope="module")
def device() -> Device:
    """The first device."""
    return Device(pytest.importorskip("cuda.bindings.driver"))


@pytest.mark.parametrize("one", LAUNCHES, ids=[one.name for one in LAUNCHES])
def test_outputs(one: One, device: Device) -> None:
    """Every array that the launch reaches."""
    here, there = one.copied(), one.copied()
    one.here(here)
    one.there(device, there)
    for ours, theirs in zip(results(here), results(there), strict=True):
        equal = ours == theirs
        if ours.dtype.kind == "f":
            equal = np.isclose(ours, theirs, rtol=one.tolerance, atol=one.tolerance, equal_nan=True)
        assert np.count_nonzero(~equal) <= DIFFER.get(one.name, 0.0) * ours.size
