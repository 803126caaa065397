"""What came from elsewhere, for tests: a folder of results, and the folder that they are to be taken into."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelwatch.store import folders
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, samples, write

MACHINE = "gpu"
COMMITS = {BASE: 0, HEAD: 1}
RESULT = f"{MACHINE}/{HEAD[:8]}-python3.11.json"
RUN = {
    "started": "2026-01-02T03:04:05+00:00",
    "ended": "2026-01-02T03:05:05+00:00",
    "commits": [HEAD],
    "gpu": "a GPU",
    "peak_bytes_per_second": 1e12,
    "before": {"driver": "580.1"},
    "after": {"driver": "580.1", "throttle_reasons": []},
    "skipped": [],
}


def arrived(folder: Path) -> tuple[Path, Path]:
    """Two commits and a record of their run, as they came; and the stored results of the first commit."""
    whole: Suite = {
        commit: {TIME: {"one": samples(seconds), "two": None}, COUNT: {"one": 4.0, "two": float("nan")}}
        for commit, seconds in ((BASE, 1.0), (HEAD, 2.0))
    }
    for name in ("in", "out"):
        (folder / name).mkdir()
    incoming = write(folder / "in", whole) / "results"
    stored = write(folder / "out", {BASE: whole[BASE]}) / "results"
    shutil.copy(incoming / MACHINE / f"{BASE[:8]}-python3.11.json", stored / MACHINE)
    for folder, run in ((stored, {**RUN, "commits": [BASE]}), (incoming, RUN)):
        (folder / MACHINE / "runs.jsonl").write_text(json.dumps(run) + "\n", encoding="utf-8")
    return incoming, stored


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and what it holds, but for the lock of who writes there."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != folders.LOCK)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON document."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
