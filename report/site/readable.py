"""Stored results without what cannot be read: at some of it asv stops, at some of it the pages would."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.machine import Machine
from asv.results import Results

from runner import record

#: What reading a file may raise that holds something else than it should.
_WRONG = (util.UserError, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


@contextmanager
def readable(folder: Path) -> Iterator[Path]:
    """Give a folder of results that asv and the pages can read, and name each file that it lacks in one line.

    Parameters
    ----------
    folder : Path
        The stored results. Nothing in it is changed.

    Yields
    ------
    Path
        The same folder where all of it can be read, else one of links to the rest, for as long as it is needed.
    """
    files = sorted(path for path in folder.rglob("*.json*") if path.suffix in (".json", ".jsonl"))
    texts = {path: _whole_lines(path) for path in files if path.suffix == ".jsonl"}
    out = {path: why for path in files if path.suffix == ".json" and (why := _problem(path))}
    for path, why in out.items():
        log.warning(f"{path} is left out: {why}")
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


def _problem(path: Path) -> str:
    """Why a JSON file of asv's cannot be read; empty if it can, or if asv itself says so best."""
    if path.name == "benchmarks.json":
        return ""
    try:
        if path.name == "machine.json":
            known = util.load_json(str(path), Machine.api_version)["machine"]
            _require(known == path.parent.name, f"it names the machine {known!r}")
        else:
            _check(Results.load(str(path), machine_name=path.parent.name))
    except _WRONG as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def _check(found: Results) -> None:
    """Raise unless the results of a commit are numbers."""
    _require(isinstance(found.commit_hash, str) and isinstance(found.date, int), "commit or date is none")
    _require(all(isinstance(value, str | int | None) for value in found.params.values()), "a parameter is no text")
    for name in found.get_all_result_keys():
        axes = found.get_result_params(name)
        values = found.get_result_value(name, axes)
        samples = [sample for each in found.get_result_samples(name, axes) for sample in each or ()]
        for value in (*values, *samples):
            _require(value is None or type(value) in (int, float), f"{name} has the value {value!r}")


def _whole_lines(path: Path) -> str | None:
    """The lines of a file that can be read, where some cannot, and a message for each of those; None if all can."""
    lines = path.read_bytes().decode(errors="replace").splitlines()
    kept = [line for number, line in enumerate(lines, start=1) if _is_entry(path, number, line)]
    return None if len(kept) == len(lines) else "".join(f"{line}\n" for line in kept)


def _is_entry(path: Path, number: int, line: str) -> bool:
    try:
        entry: Any = json.loads(line or "{}")
        _require(isinstance(entry, dict), "it holds no JSON object")
        if path.name == record.FILE and line:
            _require(all(isinstance(commit, str) for commit in entry["commits"]), "its commits are no hashes")
    except _WRONG as error:
        log.warning(f"{path}, line {number} is left out: {type(error).__name__}: {str(error)[:300]}")
        return False
    return True


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
