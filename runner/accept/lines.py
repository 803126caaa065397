"""The records beside asv's results: files of JSON lines that only grow."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from runner.accept.models import RECORDS
from runner.accept.refusal import convert, parse, require

#: A commit, wherever a record names it.
_HASH = re.compile('"([0-9a-f]{40})"')


def added(path: Path, where: str, stored: Path, commits: Collection[str]) -> list[str]:
    """The lines of a record that are not stored yet and speak of the expected commits only, as they are to be stored.

    Raises
    ------
    RefusedError
        Such a line is not as it should be, or comes twice.
    """
    known = set(stored.read_bytes().decode().splitlines()) if stored.exists() else set()
    found: dict[str, bool] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        place = f"{where}, line {number}"
        record = parse(line or b"{}", place)
        # Written anew: a carriage return within a line would make two of it.
        text = json.dumps(record, default=repr)
        if not line or text in known:
            continue
        convert(record, RECORDS[path.name], place)
        require(text not in found, place, "comes twice")
        found[text] = set(_HASH.findall(text)) <= set(commits)
    return [text for text, expected in found.items() if expected]
