"""What a timed process notes of each sample beside its time: the copy's time just before, in the folder of the run.

The benchmarks of `track_control.py` report it, so that the copy costs no process of its own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reading:
    """One sample.

    Parameters
    ----------
    process : tells the readings of one process from those of another.
    seconds : a launch of the kernel.
    copy_seconds : a copy of the same useful bytes.
    """

    process: int
    seconds: float
    copy_seconds: float


def _file(folder: Path, benchmark: str, params: Sequence[Any]) -> Path:
    digest = hashlib.sha256(json.dumps([benchmark, *params]).encode()).hexdigest()
    return folder / f"readings-{digest}.jsonl"


def note(folder: Path, benchmark: str, params: Sequence[Any], seconds: float, copy_seconds: float) -> None:
    """Add a sample of this process to a configuration's readings."""
    line = json.dumps(asdict(Reading(os.getpid(), seconds, copy_seconds)))
    with _file(folder, benchmark, params).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def read(folder: Path, benchmark: str, params: Sequence[Any]) -> list[Reading]:
    """The readings of a configuration in this run, without each process's first, which warmed up; maybe none."""
    path = _file(folder, benchmark, params)
    if not path.exists():
        return []
    found = [Reading(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return [reading for before, reading in itertools.pairwise(found) if before.process == reading.process]
