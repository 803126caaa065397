"""Rows of asv's result files: the results of one benchmark at one commit.

A file stores a row as a list, without trailing nulls, and names the columns separately. Here a row is a dict by column.
Most columns have one value per configuration, in the order of the axes; null stands for a column of nulls. A result is
NaN if the configuration was skipped or not selected, and null if it failed.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

#: Column of a row -> its value.
RowColumns = dict[str, Any]

#: Columns with one value for the whole benchmark; others have one value per configuration.
BENCHMARK_COLUMNS = ("params", "version", "started_at", "duration", "profile")

#: Columns that describe a measurement, and are not results.
_TIME_COLUMNS = ("started_at", "duration", "profile")


def list_configurations(axes: Iterable[Sequence[str]]) -> list[str]:
    """Return the texts of the configurations of these axes as asv writes them, in the order of a row."""
    return list(map(", ".join, itertools.product(*axes)))


def read_row(document: Mapping[str, Any], benchmark: str) -> RowColumns:
    """Return a benchmark's row from the JSON of a file."""
    columns, cells = document["result_columns"], document["results"][benchmark]
    return dict(itertools.zip_longest(columns, cells[: len(columns)]))


def serialize_row(row: RowColumns) -> list[Any]:
    """Return a row as a file stores it: a list without trailing nulls."""
    cells = list(row.values())
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def iter_configurations(row: RowColumns) -> Iterator[tuple[tuple[str, ...], float | None, list[float]]]:
    """Yield each configuration's parameters (without the quotes around strings), result and finite samples."""
    configurations = itertools.product(*([text.strip("'") for text in axis] for axis in row["params"]))
    columns = (itertools.chain(row.get(name) or (), itertools.repeat(None)) for name in ("result", "samples"))
    for params, value, samples in zip(configurations, *columns, strict=False):
        yield params, value, [float(sample) for sample in samples or () if sample is not None and math.isfinite(sample)]


def reindex(row: RowColumns, axes: list[list[str]]) -> RowColumns:
    """Return a row for other axes, without configurations that the axes lack. The result of new ones is NaN."""
    if row["params"] == axes:
        return row
    places = {text: place for place, text in enumerate(list_configurations(row["params"]))}
    sources = [places.get(text) for text in list_configurations(axes)]
    reindexed = {**row, "params": axes}
    for column, values in row.items():
        if column == "result" or (column not in BENCHMARK_COLUMNS and values is not None):
            blank = math.nan if column == "result" else None
            reindexed[column] = [blank if place is None else _get_value(values, place) for place in sources]
    return reindexed


def fill_missing(row: RowColumns, fallback: RowColumns) -> RowColumns:
    """Return a row with values of `fallback` for unmeasured configurations, unless its benchmark version differs."""
    if row["version"] != fallback["version"] or not isinstance(row["result"], list):
        return row
    reindexed = reindex(fallback, row["params"])
    unmeasured = {index for index, result in enumerate(row["result"]) if _is_nan(result)}
    missing = {index for index in unmeasured if not _is_nan(_get_value(reindexed["result"], index))}
    if not missing:
        return row
    filled = dict(row)
    for column in (name for name in row if name not in BENCHMARK_COLUMNS):
        values = [
            _get_value(reindexed.get(column) if index in missing else row[column], index)
            for index in range(len(row["result"]))
        ]
        filled[column] = None if all(value is None for value in values) else values
    return filled


def merge_documents(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """Return one document with the latest number of each configuration, from documents of a commit and environment."""
    merged_rows: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for document in documents for name in document["results"]):
        candidates = [read_row(document, name) for document in reversed(documents) if name in document["results"]]
        candidates.sort(key=lambda row: row["started_at"] or 0, reverse=True)
        merged_rows[name] = serialize_row(functools.reduce(fill_missing, candidates))
    durations = {name: value for document in documents for name, value in document.get("durations", {}).items()}
    return {**documents[-1], "results": merged_rows, "durations": durations}


def have_same_numbers(first: RowColumns, second: RowColumns) -> bool:
    """Return whether two rows are equal, except `_TIME_COLUMNS`, after each takes missing values from the other."""
    first_text, second_text = (  # as text, because NaN equals NaN there
        json.dumps({column: values for column, values in filled.items() if column not in _TIME_COLUMNS})
        for filled in (fill_missing(first, second), fill_missing(second, first))
    )
    return first_text == second_text


def _get_value(values: object, place: int) -> Any:
    return values[place] if isinstance(values, list) and place < len(values) else None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
