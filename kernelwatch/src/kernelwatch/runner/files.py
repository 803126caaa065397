"""Files that asv writes, put into their places whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptxcount import whole


@contextmanager
def staged(conf: Any, results: Path, folder: Path) -> Iterator[None]:
    """Let asv save into a folder of its own; then move what it wrote to the results, unless it is there already."""
    stage = folder / "stage"
    conf.results_dir = str(stage)
    try:
        yield
    finally:
        conf.results_dir = str(results)
    for path in sorted(stage.rglob("*.json")):
        target = results / path.relative_to(stage)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            whole.write(target, path.read_bytes())
    shutil.rmtree(stage, ignore_errors=True)
