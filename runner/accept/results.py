"""One file of asv's results: of an expected commit and a known machine, of known benchmarks, numbers throughout."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asv.results import Results
from asv.util import UserError

from runner.accept import strict
from runner.accept.strict import RefusedError, is_number, is_text, is_texts, require
from runner.accept.suite import Benchmark

#: `<beginning of the hash>-<environment>.json`.
NAME = re.compile(r"(?P<commit>[0-9a-f]{8})-(?P<environment>[A-Za-z0-9._-]+)\.json")

#: Samples of a configuration.
_MOST_SAMPLES = 100_000


def _amount(value: object) -> bool:
    """Times and counts: finite, and not below zero."""
    return is_number(value) and value >= 0  # type: ignore[operator]


def _result(value: object) -> bool:
    """A number; null where it failed; NaN where it was skipped."""
    return value is None or _amount(value) or (isinstance(value, float) and math.isnan(value))


def _statistic(value: object) -> bool:
    """A number or nothing; an interval of few samples has no ends."""
    return value is None or is_number(value) or (isinstance(value, float) and math.isinf(value))


def _samples(value: object) -> bool:
    return value is None or (isinstance(value, list) and len(value) <= _MOST_SAMPLES and all(map(_amount, value)))


#: A value, the benchmark, and how many configurations the results are of.
Check = Callable[[Any, Benchmark, int], bool]


def _of_each(holds: Callable[[object], bool]) -> Check:
    """A list of one entry a configuration; null stands for a list of nulls."""
    return lambda value, _, count: (
        value is None or (isinstance(value, list) and len(value) == count and all(map(holds, value)))
    )


def _axes(value: object, benchmark: Benchmark, _: int = 0) -> bool:
    """The benchmark's axes, each over some of its values in any order: results may be older than the suite."""
    return (
        isinstance(value, list) and len(value) == len(benchmark.params) and all(map(_is_among, value, benchmark.params))
    )


def _is_among(axis: object, known: list[str]) -> bool:
    return (
        isinstance(axis, list) and all(map(is_text, axis)) and len(set(axis)) == len(axis) and set(axis) <= set(known)
    )


_STATISTICS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")

#: What asv stores of a benchmark, in its order, and whether a value of it is as it should be.
COLUMNS: dict[str, Check] = {
    "result": _of_each(_result),
    "params": _axes,
    "version": lambda value, benchmark, _: value == benchmark.version,
    "started_at": lambda value, *_: value is None or _amount(value),
    "duration": lambda value, *_: value is None or _amount(value),
    **{f"stats_{name}": _of_each(_statistic) for name in _STATISTICS},
    "samples": _of_each(_samples),
    # asv would load a profile with marshal.
    "profile": lambda value, *_: value is None,
}

#: What else the file must hold, and whether a value of it is as it should be.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "python": lambda value: is_text(value, 20),
    "params": is_texts,
    "requirements": is_texts,
    # The suite sets none, and each would begin a series of its own.
    "env_vars": lambda value: value == {},
    "result_columns": lambda value: value == list(COLUMNS),
    "results": lambda value: isinstance(value, dict),
    "durations": lambda value: (
        isinstance(value, dict) and all(map(is_text, value)) and all(map(_amount, value.values()))
    ),
}


def check(
    path: Path, where: str, machine: Mapping[str, Any], suite: Mapping[str, Benchmark], commit: str, date: int
) -> None:
    """Check the results of one commit.

    Parameters
    ----------
    path : Path
        The file.
    where : str
        Its name for messages.
    machine : mapping of str to object
        The known machine's facts, as `machine.json` holds them.
    suite : mapping of str to Benchmark
        The benchmarks by name.
    commit : str
        The commit's hash.
    date : int
        When the commit was written, in milliseconds.

    Raises
    ------
    RefusedError
        Anything is not as it should be.
    """
    document = strict.read(path)
    require(isinstance(document, dict), where, "is no mapping")
    require(document.get("version") == Results.api_version, where, f"has version {document.get('version')!r}")
    for field, holds in _FIELDS.items():
        require(field in document and holds(document[field]), where, f"{field} is missing or not as expected")
    name = NAME.fullmatch(path.name)
    environment = name["environment"] if name else ""
    for field, expected in {"commit_hash": commit, "date": date, "env_name": environment}.items():
        require(document.get(field) == expected, where, f"{field} is {document.get(field)!r}, not {expected!r}")
    for fact, value in machine.items():
        given = document["params"].get(fact)
        require(fact == "version" or given == value, where, f"{fact} is {given!r}, the known machine's is {value!r}")
    for benchmark, row in document["results"].items():
        _check_row(row, f"{where}: {benchmark[:80]!r}", suite.get(benchmark))
    try:
        Results.load(str(path), machine["machine"])
    except (UserError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"{where}: asv cannot load it: {error}") from None


def _check_row(row: Any, where: str, benchmark: Benchmark | None) -> None:
    if benchmark is None:
        raise RefusedError(f"{where}: is no benchmark of this suite")
    require(isinstance(row, list) and len(row) <= len(COLUMNS), where, "has too many columns")
    filled = dict(zip(COLUMNS, [*row, *[None] * (len(COLUMNS) - len(row))], strict=True))
    require(_axes(filled["params"], benchmark), where, "params is not as expected")
    count = math.prod(map(len, filled["params"]))
    for column, value in filled.items():
        require(COLUMNS[column](value, benchmark, count), where, f"{column} is not as expected")
