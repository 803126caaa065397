"""The facts of an experiment: date, commit, GPU, versions. They are the first line of its data file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.store import jsonl

#: Where measuring writes: not what is measured.
_WRITTEN = (":!results", ":!docs")


def now(gpu: machine.Gpu) -> dict[str, Any]:
    """Return the facts of an experiment that begins now, as JSON holds them."""
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
    """Return the commit, with `-dirty` behind it if files differ from it; None where git does not say."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *_WRITTEN)
    return f"{commit}-dirty" if commit and changed else commit


def _git(*words: str) -> str | None:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def sentence(known: Mapping[str, Any]) -> str:
    """Return facts as people read them."""
    return (
        f"{known['gpu']} ({known['uuid']}), driver {known['driver']}, nvcc {known['nvcc']}, "
        f"commit {known.get('commit') or 'unknown'}, {known['date'][:10]}"
    )


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the facts and the entries that a file holds.

    Raises
    ------
    ValueError
        It holds none, or a line is no JSON.
    """
    lines = jsonl.read(path)
    if not lines:
        raise ValueError(f"{path} holds nothing; measure first")
    return lines[0].get("facts", lines[0]), lines[1:]
