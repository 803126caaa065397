"""Files of one JSON text a line that lie beside asv's results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines that are not blank, each with a name of its place for error messages; none where there is no file."""
    if path.exists():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.strip():
                yield f"{path}, line {number}", line
