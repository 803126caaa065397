"""A row of asv's results: all that a file holds of one benchmark at one commit. All readers of rows are here.

A file holds a row as a list, whose columns it names; nulls at the end are left out. Here it is a dict by column. Most
columns have a value a configuration, in the order of the axes, or null for nulls of all. A result is NaN where asv
skipped a configuration or was not asked to measure it, and null where it failed.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

#: A row by column.
Row = dict[str, Any]

#: Columns that hold something of a benchmark as a whole.
WHOLE = ("params", "version", "started_at", "duration", "profile")

#: Columns that say when it was measured, which is no number.
_MOMENTS = ("started_at", "duration", "profile")


def texts(axes: Iterable[Sequence[str]]) -> list[str]:
    """Return the configurations of a benchmark with these axes, as asv writes their values, in the order of a row."""
    return list(map(", ".join, itertools.product(*axes)))


def read(document: Mapping[str, Any], benchmark: str) -> Row:
    """Return a benchmark's row of a file."""
    columns, cells = document["result_columns"], document["results"][benchmark]
    return dict(itertools.zip_longest(columns, cells[: len(columns)]))


def written(row: Row) -> list[Any]:
    """Return a row as a file holds it."""
    cells = list(row.values())
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def each(row: Row) -> Iterator[tuple[tuple[str, ...], float | None, list[float]]]:
    """Yield each configuration's parameters, without the quotes around texts, its result, and its samples."""
    every = itertools.product(*([text.strip("'") for text in axis] for axis in row["params"]))
    columns = (itertools.chain(row.get(name) or (), itertools.repeat(None)) for name in ("result", "samples"))
    for params, value, some in zip(every, *columns, strict=False):
        finite = [float(sample) for sample in some if sample is not None and math.isfinite(sample)] if some else []
        yield params, value, finite


def on(row: Row, axes: list[list[str]]) -> Row:
    """Return a row on other axes: a configuration that it lacks was not measured, one that they lack is left out."""
    if row["params"] == axes:
        return row
    places = {text: place for place, text in enumerate(texts(row["params"]))}
    at = [places.get(text) for text in texts(axes)]
    found = {**row, "params": axes}
    for column, values in row.items():
        if column == "result" or (column not in WHOLE and values is not None):
            blank = math.nan if column == "result" else None
            found[column] = [blank if place is None else _at(values, place) for place in at]
    return found


def united(row: Row, other: Row) -> Row:
    """Return a row in which what it did not measure is the other one's; itself if that has nothing more.

    A row of another version of the benchmark has nothing to add.
    """
    if row["version"] != other["version"] or not isinstance(row["result"], list):
        return row
    more = on(other, row["params"])
    blank = {at for at, one in enumerate(row["result"]) if _is_nan(one) and not _is_nan(_at(more["result"], at))}
    if not blank:
        return row
    found = dict(row)
    for column in (each for each in row if each not in WHOLE):
        values = [_at(more.get(column) if at in blank else row[column], at) for at in range(len(row["result"]))]
        found[column] = None if all(value is None for value in values) else values
    return found


def together(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """Return one file of a commit's: each benchmark as it was measured last, with what only others measured of it."""
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for each in documents for name in each["results"]):
        several = [read(each, name) for each in reversed(documents) if name in each["results"]]
        found[name] = written(functools.reduce(united, sorted(several, key=_moment, reverse=True)))
    durations = {name: value for each in documents for name, value in each.get("durations", {}).items()}
    return {**documents[-1], "results": found, "durations": durations}


def _moment(row: Row) -> float:
    return row["started_at"] or 0


def have_same_numbers(row: Row, other: Row) -> bool:
    """Whether two rows of a benchmark say the same, whenever they were measured; what one did not measure agrees."""
    one, two = (  # as texts: there NaN equals NaN
        json.dumps({column: values for column, values in each.items() if column not in _MOMENTS})
        for each in (united(row, other), united(other, row))
    )
    return one == two


def _at(values: object, place: int) -> Any:
    """Return a configuration's value; a column of nothing but nulls may be null itself."""
    return values[place] if isinstance(values, list) and place < len(values) else None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
