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
from kernelwatch.store import folders
from kernelwatch.store.accept import models, suite
from kernelwatch.store.accept.refusal import RefusedError, convert, parse, read, require
from kernelwatch.store.accept.results import check_counts

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
    texts = {path: _whole_lines(path) for path in files if path.suffix == ".jsonl"}
    described = _described(folder)
    out = {path: why for path in files if path.suffix == ".json" and (why := _problem(path, described))}
    for path, why in out.items():
        log.warning(f"{_origin(path)} is left out: {why}")
    cut = {path: text for path, text in texts.items() if text is not None}
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


def _problem(path: Path, described: dict[str, Any]) -> str:
    """Why a JSON file of asv's cannot be read; empty if it can, or if asv itself says so best."""
    try:
        if path.name == "machine.json":
            known = util.load_json(str(path), Machine.api_version)["machine"]
            require(known == path.parent.name, "machine", f"it is {known!r}")
        elif path.name != suite.FILE:
            document = convert(read(path), models.Document, "the results")
            rows = {}
            for name, row in document.results.items():
                kind = described.get(name, {})
                rows[name] = convert(row, models.row(kind.get("type"), kind.get("unit")), name)
                check_counts(rows[name], name)
            suite.require_few((row.params for row in rows.values()), "it")
            Results.load(str(path), machine_name=path.parent.name)
    except _WRONG as error:
        return f"{type(error).__name__}: {one_line(error)}"
    return ""


def _described(folder: Path) -> dict[str, Any]:
    """The benchmarks, as far as they can be read."""
    try:
        return {name: each for name, each in read(folder / suite.FILE).items() if isinstance(each, dict)}
    except _WRONG:
        return {}


def _origin(path: Path) -> Path:
    """What a message calls a file: where it is kept, not the link to it."""
    return path.readlink() if path.is_symlink() else path


def _whole_lines(path: Path) -> str | None:
    """The lines of a file that can be read, where some cannot, and a message for each of those; None if all can."""
    lines = path.read_bytes().splitlines()
    kept = [line for number, line in enumerate(lines, start=1) if _is_entry(path, number, line)]
    return None if len(kept) == len(lines) else "".join(f"{line.decode()}\n" for line in kept)


def _is_entry(path: Path, number: int, line: bytes) -> bool:
    try:
        entry = convert(parse(line or b"{}", "the line"), dict, "the line")
        if line and path.name in models.RECORDS:
            convert(entry, models.RECORDS[path.name], "the line")
    except _WRONG as error:
        log.warning(f"{_origin(path)}, line {number} is left out: {type(error).__name__}: {one_line(error)}")
        return False
    return True
