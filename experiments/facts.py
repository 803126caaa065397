"""The facts of an experiment that begins now: when, of what, on what, with what."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from benchmarks.instruments import machine
from report.results import ROOT


def now(gpu: machine.Gpu) -> dict[str, Any]:
    """As JSON holds them."""
    before = machine.volatile()
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "machine": machine.default_name(gpu),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit or None,
        "gpu": gpu.name,
        "nvcc": machine.nvcc_release(),
        **{name: before.get(name) for name in ("driver", "uuid")},
    }


def sentence(known: Mapping[str, Any]) -> str:
    """The same, for people."""
    return (
        f"{known['gpu']} ({known['uuid']}), driver {known['driver']}, nvcc {known['nvcc']}, commit {known['commit']}, "
        f"{known['date'][:10]}"
    )
