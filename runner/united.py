"""Makes one of a stored and a local file of the same name: what both say, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Columns of a row of asv's that are its numbers: result, parameters, version; and from here on statistics and samples.
_NUMBERS, _STATISTICS = 3, 5


def lines(stored: Path, local: Path) -> list[bytes]:
    """Return the lines of a stored record, and those behind them that the local one alone has."""
    before = stored.read_bytes().splitlines() if stored.exists() else []
    known = set(before)
    return [*before, *(line for line in local.read_bytes().splitlines() if line not in known)]


def results(document: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit's results with the benchmarks of both files; those that both have are the first one's."""
    both = {name: {**other[name], **document[name]} for name in ("results", "durations")}
    return {**document, **both}


def differing(document: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the benchmarks of which two files of a commit have other numbers. When they were taken is none."""
    rows, others = document["results"], other["results"]
    return [name for name, row in rows.items() if name in others and _numbers(row) != _numbers(others[name])]


def _numbers(row: list[Any]) -> str:
    return json.dumps([row[:_NUMBERS], row[_STATISTICS:]])  # a text: NaN is not equal to itself


def content(stored: Path, local: Path) -> bytes | None:
    """Return what both files hold, where the local one counts; None if it holds all that is to be read."""
    if local.suffix == ".jsonl":
        return b"".join(line + b"\n" for line in lines(stored, local))
    try:
        ours, theirs = (json.loads(path.read_bytes()) for path in (local, stored))
        only_theirs = theirs["results"].keys() - ours["results"].keys()
        return json.dumps(results(ours, theirs)).encode() if only_theirs else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no results, or torn: the reader says so
        return None
