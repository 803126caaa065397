"""The facts of an experiment that begins now: when, on what, with what."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from benchmarks.instruments import machine


def now(gpu: machine.Gpu) -> dict[str, Any]:
    """As JSON holds them."""
    before = machine.volatile()
    return {
        "machine": machine.default_name(gpu),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "gpu": gpu.name,
        "nvcc": machine.nvcc_release(),
        **{name: before.get(name) for name in ("driver", "uuid")},
    }
