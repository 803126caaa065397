"""Textures, bulk copies, clusters, cooperative grids and everyday kernels: outputs of a device and of the executor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.driver import Device
from tests.gpu.launches import LAUNCHES, One, results

pytestmark = pytest.mark.gpu


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
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=one.tolerance, atol=one.tolerance)
        else:
            np.testing.assert_array_equal(ours, theirs)
