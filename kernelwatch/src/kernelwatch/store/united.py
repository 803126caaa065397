"""Makes one of a stored and a local file of the same name: what both say, and where they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwatch.store import samples

#: Columns of asv's rows that hold something of a benchmark as a whole; all others have a value a configuration.
WHOLE = ("params", "version", "started_at", "duration", "profile")

#: Columns of a row of asv's that are its numbers: result, parameters, version; and from here on statistics and samples.
_NUMBERS, _STATISTICS = 3, 5


def lines(stored: Path, local: Path) -> list[bytes]:
    """Return the lines of a stored record, and those behind them that the local one alone has."""
    before = stored.read_bytes().splitlines() if stored.exists() else []
    known = set(before)
    return [*before, *(line for line in local.read_bytes().splitlines() if line not in known)]


def results(document: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit's results with the configurations of both files; those that both have are the first one's."""
    rows = dict(other["results"])
    for name, row in document["results"].items():
        rows[name] = _row(document, row, other, rows[name]) if name in rows else row
    return {**document, "results": rows, "durations": {**other["durations"], **document["durations"]}}


def differing(document: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the benchmarks of which two files of a commit have other numbers. When they were taken is none.

    What one of them did not measure does not differ.
    """
    rows, others = document["results"], other["results"]
    both = [(name, row, others[name]) for name, row in rows.items() if name in others]
    return [
        name
        for name, one, two in both
        if _numbers(_row(document, one, other, two)) != _numbers(_row(other, two, document, one))
    ]


def _row(document: Mapping[str, Any], row: list[Any], other: Mapping[str, Any], theirs: list[Any]) -> list[Any]:
    """Return a benchmark's row, in which what it did not measure is the other one's.

    asv writes NaN there, and None for what failed: that was measured. Rows of other axes or versions are left as they
    are.
    """
    columns = document.get("result_columns")
    is_like = columns == other.get("result_columns") and row[1:_NUMBERS] == theirs[1:_NUMBERS]
    if not columns or not is_like or not row or not isinstance(row[0], list):
        return row
    count = len(row[0])
    blank = {at for at, value in enumerate(row[0]) if _is_nan(value) and not _is_nan(_at(theirs[0], at))}
    if not blank:
        return row
    united = []
    for place, column in enumerate(columns):
        ours = row[place] if place < len(row) else None
        if column not in WHOLE:
            added = theirs[place] if place < len(theirs) else None
            values = [_at(added if at in blank else ours, at) for at in range(count)]
            ours = None if all(value is None for value in values) else values
        united.append(ours)
    while united[-1] is None:  # as asv leaves them out
        united.pop()
    return united


def _at(values: object, place: int) -> Any:
    """Return a configuration's value; asv has None for a list of nothing else."""
    return values[place] if isinstance(values, list) and place < len(values) else None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _numbers(row: list[Any]) -> str:
    return json.dumps([row[:_NUMBERS], row[_STATISTICS:]])  # a text: NaN is not equal to itself


def content(stored: Path, local: Path) -> bytes | None:
    """Return what both files hold, where the local one counts; None if it holds all that is to be read."""
    if local.suffix == ".jsonl":
        return b"".join(line + b"\n" for line in lines(stored, local))
    try:
        ours, theirs = (samples.read(path) for path in (local, stored))
        both = results(ours, theirs)
        is_more = both["results"] != ours["results"]  # a row that nothing was added to is the same object, NaN or not
        return json.dumps(both).encode() if is_more else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no results, or torn: the reader says so
        return None
