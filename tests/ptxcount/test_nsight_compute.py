"""Counters against Nsight Compute's on an H200, from `tests/data`; no GPU needed."""

import csv
from pathlib import Path

import pytest

from tests.gpu.launches import LAUNCHES, DeviceLaunch

_FILE = Path(__file__).parents[1] / "data" / "nsight-compute-launches-h200.csv"
_ROWS = csv.DictReader(line for line in _FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
READINGS = {row.pop("launch"): {name: int(value or 0) for name, value in row.items()} for row in _ROWS}
LOADS, STORES = {"load_requests", "load_sectors"}, {"store_requests", "store_sectors"}
ATOMICS = {"atomic_requests", "atomic_sectors"}
#: Counters that differ; docs/evidence/counter.md has the reasons.
OTHERWISE: dict[str, set[str]] = {
    # ptxas merges, drops or unrolls accesses
    "summed_by_function": STORES, "attention": LOADS,
    # retries of a second warp; the GPU's wavefronts include generic atomics on global memory
    "half_atomics": {*ATOMICS, "shared_atomic_wavefronts"}, "function halves": {"shared_atomic_wavefronts"},
    # order of warps
    "compacted": {"store_sectors"}, "quantised": {"shared_atomic_wavefronts"}, "locked_sum": ATOMICS,
    # the GPU includes atomics in another block's memory
    "neighbours": {"shared_atomic_wavefronts"},
    # retries of a lock; loops with a YIELD in a loop, and behind one another; the GPU has up to 1 % more wavefronts
    "lock": ATOMICS, "walk_repeatedly": {"store_requests"}, "walk_twice": {*STORES, *ATOMICS},
    "insert_several": STORES, "walk_several": {*LOADS, "store_requests"},
    "walk_shared": {"shared_atomic_wavefronts"}, "insert_shared": {"shared_atomic_wavefronts"},
    # grid barriers, whose own accesses the GPU counts
    "cooperative grid": {*LOADS, "shared_atomic_wavefronts"},
    # indirect calls, and the heap
    "function shapes": {"load_requests", *STORES}, "function chosen": STORES,
    "function heap": {*LOADS, *STORES, *ATOMICS, "shared_atomic_wavefronts"},
    "beyond a surface": {"surface_load_sectors"},
}  # fmt: skip
#: Launch -> a counter, and its largest relative difference: fetches of eight neighbours, and of four of 16 bytes.
NEAR = {
    **{name: ("texture_load_sectors", 0.007) for name in READINGS if name.startswith("fetch3") and "linear" in name},
    "float4 linear": ("texture_load_sectors", 0.001),
}


@pytest.mark.parametrize("device_launch", LAUNCHES, ids=[device_launch.name for device_launch in LAUNCHES])
def test_counters_as_on_an_h200(device_launch: DeviceLaunch) -> None:
    readings = READINGS[device_launch.name]
    counters = device_launch.run_on_cpu(device_launch.copy_arguments())
    totals = counters.totals()
    totals |= {f"shared_{kind}_wavefronts": wavefronts for kind, (_, wavefronts) in counters.merged.items()}
    near, share = NEAR.get(device_launch.name, ("", 0.0))
    differ = {name for name, value in readings.items() if totals.get(name, 0) != value}
    assert differ - {near} == OTHERWISE.get(device_launch.name, set())
    if near:
        assert totals[near] == pytest.approx(readings[near], rel=share)
