"""One file of asv's results: of an expected commit and a known machine, of known benchmarks, numbers throughout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from asv.results import Results
from asv.util import UserError

from kernelwatch.store.accept import models, suite
from kernelwatch.store.accept.models import RESULT, Benchmark, Document, Row
from kernelwatch.store.accept.refusal import RefusedError, convert, read, require
from kernelwatch.toolchain import releases as compilers


def check(
    path: Path,
    where: str,
    machine: Mapping[str, Any],
    known: Mapping[str, Benchmark],
    commit: str,
    date: int,
    stored: Path | None = None,
) -> int:
    """Check the results of one commit; return how many configurations they are of, besides the stored ones.

    Parameters
    ----------
    path : Path
        The file.
    where : str
        Its name for messages.
    machine : mapping of str to object
        The known machine's facts, as `machine.json` holds them.
    known : mapping of str to Benchmark
        The benchmarks by name.
    commit : str
        The commit's hash.
    date : int
        When the commit was written, in milliseconds.
    stored : Path, optional
        The commit's stored results, if there are any: a row that they have, perhaps of an older suite, may be here too.

    Raises
    ------
    RefusedError
        Anything is not as it should be.
    """
    document = convert(read(path), Document, where)
    name = RESULT.fullmatch(path.name)
    facts = {fact: value for fact, value in machine.items() if fact != "version"}
    facts |= {"python": document.python} if "python" in document.params else {}
    compiler = compilers.of_file(path.name)
    require(compiler is None or compiler in compilers.releases(), where, f"{compiler} is no watched compiler")
    told = {"commit_hash": commit, "date": date, "env_name": name and name["environment"], "params": facts}
    told["env_vars"] = {compilers.VARIABLE: compiler} if compiler else {}
    for field, expected in told.items():
        given = getattr(document, field)
        require(given == expected, where, f"{field} is {given!r}, not {expected!r}")
    old = _rows(stored) if stored else {}
    new = {benchmark: row for benchmark, row in document.results.items() if row != old.get(benchmark)}
    for benchmark in new:
        require(benchmark in known, f"{where}: {benchmark!r}", "is no benchmark of this suite")
    rows = {benchmark: _row(row, f"{where}: {benchmark!r}", known[benchmark]) for benchmark, row in new.items()}
    count = suite.require_few((row.params for row in rows.values()), where)
    try:
        Results.load(str(path), machine["machine"])
    except (UserError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"{where}: asv cannot load it: {error}") from None
    return count


def _rows(stored: Path) -> dict[str, Any]:
    try:
        return dict(convert(read(stored), Document, stored).results)
    except RefusedError:  # there is none, or it cannot be read
        return {}


def _row(given: object, where: str, benchmark: Benchmark) -> Row[Any]:
    row: Row[Any] = convert(given, models.row(benchmark.type, benchmark.unit), where)
    require(row.version == benchmark.version, where, f"version is {row.version!r}, not {benchmark.version!r}")
    require(len(row.params) == len(benchmark.params), where, "params has not the benchmark's axes")
    for axis, known in zip(row.params, benchmark.params, strict=True):
        # Results may be older than the suite, whose values may be more and in another order.
        require(len(set(axis)) == len(axis) and set(axis) <= set(known), where, "params has values it may not have")
    check_counts(row, where)
    return row


def check_counts(row: Row[Any], where: str) -> None:
    """Refuse results of more or fewer configurations than their axes have."""
    count = math.prod(map(len, row.params))
    for column, values in msgspec.structs.asdict(row).items():
        fits = column == "params" or not isinstance(values, list) or len(values) == count
        require(fits, where, f"{column} has not one value for each of {count} configurations")
