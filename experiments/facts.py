"""The facts of an experiment that begins now: when, of what, on what, with what."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from benchmarks.instruments import machine
from report.results import ROOT

#: Where measuring writes: not what is measured.
_WRITTEN = (":!results", ":!docs")


def now(gpu: machine.Gpu) -> dict[str, Any]:
    """As JSON holds them."""
    before = machine.volatile()
    return {
        "machine": machine.default_name(gpu),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "gpu": gpu.name,
        "nvcc": machine.nvcc_release(),
        **{name: before.get(name) for name in ("driver", "uuid")},
    }


def _commit() -> str | None:
    """The commit, with `-dirty` behind it if files differ from it; None where git does not say."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *_WRITTEN)
    return f"{commit}-dirty" if commit and changed else commit


def _git(*words: str) -> str | None:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def sentence(known: Mapping[str, Any]) -> str:
    """The same, for people."""
    return (
        f"{known['gpu']} ({known['uuid']}), driver {known['driver']}, nvcc {known['nvcc']}, "
        f"commit {known.get('commit') or 'unknown'}, {known['date'][:10]}"
    )
