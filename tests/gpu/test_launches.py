"""Textures, tensor cores, clusters, cooperative grids and everyday kernels: equal outputs of device and executor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.driver import Device
from tests.gpu.launches import LAUNCHES, DeviceLaunch, list_arrays

pytestmark = pytest.mark.gpu

#: Launch -> share of values that may differ (docs/evidence/counter.md). Causes are the order of atomics, extents that
#: are no power of two, and weights of eight neighbours.
DIFFER = {
    "compacted": 1.0,
    **{launch.name: 0.002 for launch in LAUNCHES if "linear" in launch.name and "19" in launch.name},
    **{launch.name: 0.08 for launch in LAUNCHES if launch.name.startswith("fetch3") and "linear" in launch.name},
}


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(pytest.importorskip("cuda.bindings.driver"))


@pytest.mark.parametrize("launch", LAUNCHES, ids=[launch.name for launch in LAUNCHES])
def test_outputs_are_equal(launch: DeviceLaunch, device: Device) -> None:
    on_cpu, on_device = launch.copy_arguments(), launch.copy_arguments()
    launch.run_on_cpu(on_cpu)
    launch.run_on_device(device, on_device)
    for cpu_array, device_array in zip(list_arrays(on_cpu), list_arrays(on_device), strict=True):
        equal = cpu_array == device_array
        if cpu_array.dtype.kind == "f":
            equal = np.isclose(cpu_array, device_array, rtol=launch.tolerance, atol=launch.tolerance, equal_nan=True)
        assert np.count_nonzero(~equal) <= DIFFER.get(launch.name, 0.0) * cpu_array.size
