"""What one measures again on a GPU of one's own: bias against Nsight Compute, and times by other tools."""

from __future__ import annotations

from datetime import datetime, timezone

from kernelwatch.instrument import machine


def where(gpu: machine.Gpu) -> str:
    """Return on what is measured now, as people read it."""
    now = machine.volatile()
    date = datetime.now(timezone.utc).date()
    return f"{gpu.name} ({now.get('uuid')}), driver {now.get('driver')}, nvcc {machine.nvcc_release()}, {date}"
