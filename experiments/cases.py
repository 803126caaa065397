"""The launches that experiments measure, from the timed sweeps of the catalog: a new kernel is among them."""

from __future__ import annotations

from gpu_kernels import catalog
from gpu_kernels.sweep import Sweep


def sweeps() -> list[Sweep]:
    """Return the sweeps that are timed back to back and from DRAM."""
    return [sweep for sweep in catalog.timed() if not (sweep.in_l2 or sweep.isolated)]
