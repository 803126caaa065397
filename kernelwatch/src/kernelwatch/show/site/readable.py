"""Stored results without what cannot be read: at some of it asv stops, at some of it the pages would."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.machine import Machine
from asv.results import Results

from kernelwatch.command import one_line
from kernelwatch.show.site import kept
from kernelwatch.store import folders, models
from kernelwatch.store.accept import checks
from kernelwatch.store.accept.refusal import RefusedError, convert, parse, read, require
from kernelwatch.store.record import RECORDS

#: What reading a file may raise that holds something else than it should.
_WRONG = (
    RefusedError,
    util.UserError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    RecursionError,
)


@contextmanager
def readable(stored: Path) -> Iterator[Path]:
    """Give a folder of results that asv and the pages can read, and name each file that it lacks in one line.

    Parameters
    ----------
    stored : Path
        The stored results; local ones are read along. Nothing in them is changed.

    Yields
    ------
    Path
        The same folder where all of it can be read and no machine is local, else one of links to what can be read, for
        as long as it is needed.
    """
    with folders.joined(stored) as folder, _what_can_be_read(folder) as rest:
        yield rest


@contextmanager
def _what_can_be_read(folder: Path) -> Iterator[Path]:
    files = sorted(path for path in folder.rglob("*.json*") if path.suffix in (".json", ".jsonl"))
    described = _described(folder)
    wrong = {path: _wrong(path, described, folder / checks.SUITE) for path in files}
    cut = {path: _whole_lines(path) for path in files if wrong[path] and path.suffix == ".jsonl"}
    out = {path: why for path, why in wrong.items() if why and path not in cut}
    for path, why in out.items():
        log.warning(f"{_origin(path)} is left out: {why}")
    if not out and not cut:
        yield folder
        return
    with tempfile.TemporaryDirectory() as made:
        for path in files:
            target = Path(made, path.relative_to(folder))
            if path in out or path.parent / "machine.json" in out:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in cut:
                target.write_text(cut[path], encoding="utf-8")
            else:
                target.symlink_to(path.resolve())
        yield Path(made)


def _wrong(path: Path, described: dict[str, Any], listed: Path) -> str:
    """What is wrong with a file; empty if nothing is. It is read once for what it and the list of benchmarks hold."""

    def found() -> str:
        if path.suffix == ".json":
            return _problem(path, described)
        lines = path.read_bytes().splitlines()
        return next(filter(None, (_line_problem(path, each) for each in lines)), "")

    try:
        parts = [kept.code(), path.parent.name, path.name, kept.of_file(path), kept.of_file(listed)]
        return str(kept.once(parts, found))
    except OSError as error:
        return f"{type(error).__name__}: {one_line(error)}"


def _problem(path: Path, described: dict[str, Any]) -> str:
    """Why a JSON file of asv's cannot be read; empty if it can, or if asv itself says so best."""
    try:
        if path.name == "machine.json":
            known = util.load_json(str(path), Machine.api_version)["machine"]
            require(known == path.parent.name, "machine", f"it is {known!r}")
        elif path.name != checks.SUITE:
            document = convert(read(path), models.Document, "the results")
            rows = {}
            for name, row in document.results.items():
                kind = described.get(name, {})
                rows[name] = convert(row, models.row(kind.get("type"), kind.get("unit")), name)
                checks.counts(rows[name], name)
            checks.require_few((row.params for row in rows.values()), "it")
            Results.load(str(path), machine_name=path.parent.name)
    except _WRONG as error:
        return f"{type(error).__name__}: {one_line(error)}"
    return ""


def _described(folder: Path) -> dict[str, Any]:
    """The benchmarks, as far as they can be read."""
    try:
        return {name: each for name, each in read(folder / checks.SUITE).items() if isinstance(each, dict)}
    except _WRONG:
        return {}


def _origin(path: Path) -> Path:
    """What a message calls a file: where it is kept, not the link to it."""
    return path.readlink() if path.is_symlink() else path


def _whole_lines(path: Path) -> str:
    """The lines of a file that can be read, and a message for each of the others."""
    whole = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if problem := _line_problem(path, line):
            log.warning(f"{_origin(path)}, line {number} is left out: {problem}")
        else:
            whole.append(f"{line.decode()}\n")
    return "".join(whole)


def _line_problem(path: Path, line: bytes) -> str:
    """Why a line of a record cannot be read; empty if it can."""
    try:
        entry = convert(parse(line or b"{}", "the line"), dict, "the line")
        if line and path.name in RECORDS:
            convert(entry, RECORDS[path.name], "the line")
    except _WRONG as error:
        return f"{type(error).__name__}: {one_line(error)}"
    return ""
