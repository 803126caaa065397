"""What an experiment keeps in `docs/`: JSON lines, the first with its facts, then one an entry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write(path: Path, known: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> None:
    """Keep each entry as it comes, beside the file until all have come: a run that fails leaves the file as it was.

    Parameters
    ----------
    known : the facts.
    """
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        for line in itertools.chain([{"facts": known}], entries):
            file.write(f"{json.dumps(line)}\n")
            file.flush()
    unfinished.replace(path)


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The facts and the entries."""
    first, *entries = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return first["facts"], entries
