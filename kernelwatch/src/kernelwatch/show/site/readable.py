"""Stored results without what cannot be read: at some of it asv stops, at some of it the pages would."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
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
_WRONG = (RefusedError, util.UserError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


@contextmanager
def readable(stored: Path) -> Iterator[Path]:
    """Give a folder of results that asv and the pages can read, and name each file and line that it lacks.

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
    with folders.joined(stored) as folder, tempfile.TemporaryDirectory() as made:
        files = sorted(path for path in folder.rglob("*.json*") if path.suffix in (".json", ".jsonl"))
        listed = folder / checks.SUITE
        described = _described(listed)
        wrong = {path: found for path in files if (found := _problems(path, described, listed))}
        for path, found in wrong.items():
            for line, why in found:
                origin = path.readlink() if path.is_symlink() else path  # where it is kept, not the link to it
                log.warning(f"{origin}{f', line {line}' if line else ''} is left out: {why}")
        for path in files if wrong else ():
            left_out, target = {line for line, _ in wrong.get(path, ())}, Path(made, path.relative_to(folder))
            if 0 in left_out or path.parent / "machine.json" in wrong:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if left_out:
                lines = enumerate(path.read_bytes().splitlines(), start=1)
                target.write_bytes(b"".join(line + b"\n" for number, line in lines if number not in left_out))
            else:
                target.symlink_to(path.resolve())
        yield Path(made) if wrong else folder


def _problems(path: Path, described: dict[str, Any], listed: Path) -> list[tuple[int, str]]:
    """What is wrong with the lines of a record, or with a whole file: line 0. It is read once for what it holds."""

    def found() -> list[tuple[int, str]]:
        if path.suffix == ".json":
            every = [(0, _why(_check, path, described))]
        else:
            lines = enumerate(path.read_bytes().splitlines(), start=1)
            every = [(number, _why(_check_line, path.name, line)) for number, line in lines]
        return [(number, why) for number, why in every if why]

    try:
        parts = [kept.code(), path.parent.name, path.name, kept.of_file(path), kept.of_file(listed)]
        return list(kept.once(parts, found))
    except OSError as error:
        return [(0, f"{type(error).__name__}: {one_line(error)}")]


def _why(check: Callable[..., object], *given: Any) -> str:
    """Why something cannot be read; empty if it can."""
    try:
        check(*given)
    except _WRONG as error:
        return f"{type(error).__name__}: {one_line(error)}"
    return ""


def _check(path: Path, described: dict[str, Any]) -> None:
    """Read a JSON file of asv's, unless asv itself says best what is wrong with it."""
    if path.name == "machine.json":
        known = util.load_json(str(path), Machine.api_version)["machine"]
        require(known == path.parent.name, "machine", f"it is {known!r}")
    elif path.name != checks.SUITE:
        document = convert(read(path), models.Document, "the results")
        rows = {}
        for name, row in document.results.items():
            rows[name] = convert(row, models.row(described.get(name, {}).get("type")), name)
            checks.counts(rows[name], name)
        checks.require_few((row.params for row in rows.values()), "it")
        Results.load(str(path), machine_name=path.parent.name)


def _check_line(name: str, line: bytes) -> None:
    """Read a line of a record."""
    entry = convert(parse(line or b"{}", "the line"), dict, "the line")
    if line and name in RECORDS:
        convert(entry, RECORDS[name], "the line")


def _described(listed: Path) -> dict[str, Any]:
    """The benchmarks, as far as they can be read."""
    try:
        return {name: each for name, each in read(listed).items() if isinstance(each, dict)}
    except _WRONG:
        return {}
