"""Merged rows of asv's results: a row's missing values come from another row, even with other axes."""

import math

import pytest

from kernelwatch.store import result_rows

NAN = math.nan


def row(axis: str, *result: float | None, version: str = "1", moment: int = 0) -> result_rows.RowColumns:
    """Return a row of results on one axis, whose values are letters, with a quantile for each number."""
    quantiles = [None if value is None or value != value else 10 * value for value in result]
    return {"result": [*result], "params": [[*axis]], "version": version, "started_at": moment, "stats_q_25": quantiles}


#: Case -> row, row that fills its gaps, merged numbers, and whether both rows have the same numbers.
BOTH: dict[str, tuple[result_rows.RowColumns, result_rows.RowColumns, list[float | None], bool]] = {
    "the same at another time": (row("xy", 1, 2), row("xy", 1, 2, moment=5), [1, 2], True),
    "the first one counts": (row("xy", 1, 2), row("xy", 3, 2), [1, 2], False),
    "a configuration each": (row("xy", 1, NAN), row("xy", NAN, 2), [1, 2], True),
    "one more": (row("xy", NAN, 2), row("xy", 1, 2), [1, 2], True),
    "one that failed was measured": (row("xy", 1, None), row("xy", 1, 2), [1, None], False),
    "one that failed elsewhere": (row("xy", 1, NAN), row("xy", 1, None), [1, None], True),
    "one that neither measured": (row("xy", 1, NAN), row("xy", 1, NAN), [1, NAN], True),
    "another version": (row("xy", 1, NAN), row("xy", 1, 2, version="2"), [1, NAN], False),
    "another order": (row("yx", NAN, 1), row("xy", 1, 2), [2, 1], False),
    "other values of the axis": (row("zxy", NAN, NAN, 3), row("xw", 1, 2), [NAN, 1, 3], False),
    "all failed elsewhere": (row("xy", 1, NAN), row("xy") | {"result": None, "stats_q_25": None}, [1, None], False),
    "all failed": (row("xy") | {"result": None, "stats_q_25": None}, row("xy", 1, 2), [], False),
}


@pytest.mark.parametrize("name", BOTH)
def test_missing_values_are_filled(name: str) -> None:
    """Values that were not measured (NaN) and their statistics come from the other row. Failures (None) stay."""
    columns, fallback, result, _ = BOTH[name]
    texts_before = [str(columns), str(fallback)]  # texts, because NaN does not equal NaN
    filled = result_rows.fill_missing(columns, fallback)
    expected = {**columns, **row(*columns["params"], *result, moment=columns["started_at"])} if result else columns
    assert str(filled) == str(expected)
    assert (filled is columns) == (str(filled) == texts_before[0])
    assert [str(columns), str(fallback)] == texts_before, "neither row changes"


@pytest.mark.parametrize("name", BOTH)
def test_same_numbers_are_recognized(name: str) -> None:
    columns, fallback, _, is_same = BOTH[name]
    assert result_rows.have_same_numbers(columns, fallback) is is_same


def test_row_is_written_as_read() -> None:
    """Trailing columns without a value are left out."""
    cells = [[1.0, 2.0], [["x", "y"]], "1", None, 3.0]
    columns = ["result", "params", "version", "started_at", "duration", "samples"]
    row = result_rows.read_row({"result_columns": columns, "results": {"b": cells}}, "b")
    assert row == dict(zip(columns, [*cells, None], strict=True))
    assert result_rows.serialize_row(row) == cells


def test_row_lists_its_configurations() -> None:
    """Only finite samples are listed. Results that the row lacks are None."""
    row: result_rows.RowColumns = {
        "result": [1.0, None, NAN, 4.0],
        "params": [["'a'", "'b'"], ["1", "2"]],
        "samples": [[1.0, None, NAN], None, None, []],
    }
    assert result_rows.list_configurations(row["params"]) == ["'a', 1", "'a', 2", "'b', 1", "'b', 2"]
    configurations = list(result_rows.iter_configurations(row))
    assert [params for params, _, _ in configurations] == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    outcomes = str([(value, samples) for _, value, samples in configurations])
    assert outcomes == "[(1.0, [1.0]), (None, []), (nan, []), (4.0, [])]"
    for result, values in ((None, [None, None]), ([1.0], [1.0, None])):
        incomplete: result_rows.RowColumns = {"result": result, "params": [["1", "2"]]}
        assert [value for _, value, _ in result_rows.iter_configurations(incomplete)] == values
