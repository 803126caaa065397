"""Counters of launches as Nsight Compute read them on an H200; `tests/data` has its readings, and no GPU is needed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.gpu.launches import LAUNCHES, DeviceLaunch

_FILE = Path(__file__).parents[1] / "data" / "nsight-compute-launches-h200.csv"
_ROWS = csv.DictReader(line for line in _FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
READINGS = {row.pop("launch"): {name: int(value or 0) for name, value in row.items()} for row in _ROWS}

LOADS, STORES = {"load_requests", "load_sectors"}, {"store_requests", "store_sectors"}
ATOMICS = {"atomic_requests", "atomic_sectors"}
#: Counters that differ in ptxcount; docs/evidence/counter.md has the known reasons.
OTHERWISE: dict[str, set[str]] = {
    # ptxas merges, drops or unrolls accesses
    "summed_by_function": STORES,
    "tiles": LOADS,
    "reduced_by_hardware": LOADS,
    "attention": LOADS,
    "sparse_product": LOADS,
    # a second warp's retries; the chip's wavefronts hold generic atomics on global memory as well
    "half_atomics": {*ATOMICS, "shared_atomic_wavefronts"},
    "function halves": {"shared_atomic_wavefronts"},
    # which warp comes first
    "compacted": {"store_sectors"},
    "quantised": {"shared_atomic_wavefronts"},
    "locked_sum": ATOMICS,
    # the chip counts wavefronts of atomics in the memory of another block as well
    "neighbours": {"shared_atomic_wavefronts"},
    # barriers of a grid, whose own accesses the chip counts
    "cooperative grid": {*LOADS, "shared_atomic_wavefronts"},
    # calls by an address, and the heap
    "function shapes": {"load_requests", *STORES},
    "function chosen": STORES,
    "function heap": {*LOADS, *STORES, *ATOMICS, "shared_atomic_wavefronts"},
    "beyond a surface": {"surface_load_sectors"},
}
#: Counters that are near, by a share: fetches of eight neighbours, and of four of 16 bytes.
NEAR = {
    **{name: ("texture_load_sectors", 0.007) for name in READINGS if name.startswith("fetch3") and "linear" in name},
    "float4 linear": ("texture_load_sectors", 0.001),
}


@pytest.mark.parametrize("device_launch", LAUNCHES, ids=[device_launch.name for device_launch in LAUNCHES])
def test_reading(device_launch: DeviceLaunch) -> None:
    """Global, shared (as ptxas merges), texture and surface counters equal the chip's, but for those listed."""
    readings = READINGS[device_launch.name]
    counters = device_launch.run_on_cpu(device_launch.copy_arguments())
    totals = counters.totals()
    totals |= {f"shared_{kind}_wavefronts": wavefronts for kind, (_, wavefronts) in counters.merged.items()}
    near, share = NEAR.get(device_launch.name, ("", 0.0))
    differ = {name for name, value in readings.items() if totals.get(name, 0) != value}
    assert differ - {near} == OTHERWISE.get(device_launch.name, set())
    if near:
        assert totals[near] == pytest.approx(readings[near], rel=share)
