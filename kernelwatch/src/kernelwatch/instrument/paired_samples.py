"""What a timed process notes of its samples: each beside the copy's time just before, in the folder of the run.

The benchmarks of `track_control.py` report it, so that the copy costs no process of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.store import jsonl


class PairedSample(NamedTuple):
    """One sample: seconds of a launch of the kernel, and of a copy of the same useful bytes."""

    seconds: float
    copy_seconds: float


def _file(folder: Path, benchmark: str, params: Sequence[Any]) -> Path:
    digest = hashlib.sha256(json.dumps([benchmark, *params]).encode()).hexdigest()
    return folder / f"samples-{digest}.jsonl"


def note(folder: Path, benchmark: str, params: Sequence[Any], pairs: Iterable[tuple[float, float]]) -> None:
    """Add the samples of a process to a configuration's."""
    jsonl.append(_file(folder, benchmark, params), *(PairedSample(*pair)._asdict() for pair in pairs))


def forget(folder: Path, benchmark: str, params: Sequence[Any]) -> None:
    """Drop a configuration's samples, once they are reported: of more rounds, each reports its own."""
    _file(folder, benchmark, params).unlink(missing_ok=True)


def read(folder: Path, benchmark: str, params: Sequence[Any]) -> list[PairedSample]:
    """Return a configuration's samples in this run; maybe none."""
    return [PairedSample(**entry) for entry in jsonl.read(_file(folder, benchmark, params))]
