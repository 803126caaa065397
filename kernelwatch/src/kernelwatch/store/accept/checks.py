"""What must hold of what came: which files there are, the list of benchmarks, one commit's results, and records."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.util import UserError

from kernelwatch.store import models
from kernelwatch.store.accept.refusal import RefusedError, convert, parse, read, require
from kernelwatch.store.models import RESULT, Benchmark, Document, Row
from kernelwatch.store.record import RECORDS
from kernelwatch.toolchain import releases as compilers

#: asv's list of benchmarks, and its facts of a machine.
SUITE, FACTS = "benchmarks.json", "machine.json"

#: Bytes of a file; the largest results stored so far take half a megabyte.
LARGEST = 16 << 20

#: Configurations that all benchmarks may have together, and so the results of one commit. This suite has 5,513.
MOST = 100_000

_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: A commit, wherever a record names it.
_HASH = re.compile('"([0-9a-f]{40})"')


def files(folder: Path, machine: str) -> dict[str, Path]:
    """Return what results of a machine consist of in a folder, as "machine/file" or "file". None is opened.

    Raises
    ------
    RefusedError
        Something else than a folder or a file in its place, such as a link, or a file that is too large.
    """
    require(_MACHINE.fullmatch(machine), repr(machine), "is no name of a machine")
    own = folder / machine
    for each in (folder, own):
        require(each.is_dir() and not each.is_symlink(), each, "is no folder")
    known = (path for path in own.iterdir() if path.name in (*RECORDS, FACTS) or RESULT.fullmatch(path.name))
    found = {f"{machine}/{path.name}": path for path in sorted(known)}
    found |= {SUITE: folder / SUITE} if os.path.lexists(folder / SUITE) else {}
    for name, path in found.items():
        facts = path.lstat()
        require(stat.S_ISREG(facts.st_mode), name, "is a link or a device, not a file")
        require(facts.st_size <= LARGEST, name, f"has {facts.st_size} bytes, more than {LARGEST}")
    return found


def require_few(axes: Iterable[Sequence[Sequence[str]]], where: object) -> None:
    """Refuse benchmarks that have more configurations together than MOST. Nothing is expanded."""
    count = sum(math.prod(map(len, each)) for each in axes)
    require(count <= MOST, where, f"has {count} configurations, more than {MOST}")


def suite(path: Path) -> dict[str, Benchmark]:
    """Return the benchmarks of asv's list by name. Raises RefusedError where the file is not as asv writes it."""
    document = convert(read(path), dict, path)
    version = document.pop("version", None)
    require(version == Benchmarks.api_version, path, f"has version {version!r}, not {Benchmarks.api_version}")
    found = {name: convert(each, Benchmark, f"{path}: {name[:80]!r}") for name, each in document.items()}
    for name, benchmark in found.items():
        require(benchmark.name == name, f"{path}: {name!r}", "is called otherwise inside")
    require_few((benchmark.params for benchmark in found.values()), path)
    return found


def require_same_axes(new: Mapping[str, Benchmark], stored: Mapping[str, Benchmark], where: object) -> None:
    """Refuse a benchmark whose axes are others than the stored one's of its version: no stored value could be found."""
    for name, benchmark in new.items():
        known = stored.get(name, benchmark)
        require(
            known.version != benchmark.version or known.param_names == benchmark.param_names,
            f"{where}: {name!r}",
            f"has the axes {benchmark.param_names}; stored, in the same version, are {known.param_names}: "
            "give it another version, or the new axis to a benchmark of another name",
        )


def results(
    path: Path, where: str, machine: Mapping[str, Any], known: Mapping[str, Benchmark], commit: str, date: int,
    stored: Path | None = None,
) -> None:  # fmt: skip
    """Check the results of one commit.

    Parameters
    ----------
    path : Path
        The file; messages call it `where`.
    machine, known : mapping
        The known machine's facts, as `machine.json` holds them, and the benchmarks by name.
    commit, date : str, int
        The commit's hash, and when it was written, in milliseconds.
    stored : Path, optional
        The commit's stored results, if there are any: a row that they have, perhaps of an older suite, may be here too.

    Raises
    ------
    RefusedError
        The commit or the machine is another, a benchmark is not known, or what should be a number is none.
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
    require_few((row.params for row in rows.values()), where)
    try:
        Results.load(str(path), machine["machine"])
    except (UserError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"{where}: asv cannot load it: {error}") from None


def _rows(stored: Path) -> dict[str, Any]:
    try:
        return dict(convert(read(stored), Document, stored).results)
    except RefusedError:  # there is none, or it cannot be read
        return {}


def _row(given: object, where: str, benchmark: Benchmark) -> Row[Any]:
    row: Row[Any] = convert(given, models.row(benchmark.type), where)
    require(row.version == benchmark.version, where, f"version is {row.version!r}, not {benchmark.version!r}")
    require(len(row.params) == len(benchmark.params), where, "params has not the benchmark's axes")
    for axis, known in zip(row.params, benchmark.params, strict=True):
        # Results may be older than the suite, whose values may be more and in another order.
        require(len(set(axis)) == len(axis) and set(axis) <= set(known), where, "params has values it may not have")
    counts(row, where)
    return row


def counts(row: Row[Any], where: str) -> None:
    """Refuse results of more or fewer configurations than their axes have."""
    count = math.prod(map(len, row.params))
    for column, values in msgspec.structs.asdict(row).items():
        fits = column == "params" or not isinstance(values, list) or len(values) == count
        require(fits, where, f"{column} has not one value for each of {count} configurations")


def lines(path: Path, where: str, stored: Path, commits: Collection[str]) -> list[str]:
    """Return the lines of a record that are not stored yet and speak of the expected commits only, as to be stored.

    Raises RefusedError where such a line is not as it should be.
    """
    known = set(stored.read_bytes().decode().splitlines()) if stored.exists() else set()
    found: dict[str, bool] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        place = f"{where}, line {number}"
        record = parse(line or b"{}", place)
        # Written anew: a carriage return within a line would make two of it.
        text = json.dumps(record, default=repr)
        if line and text not in known:
            convert(record, RECORDS[path.name], place)
            found[text] = set(_HASH.findall(text)) <= set(commits)
    return [text for text, expected in found.items() if expected]
