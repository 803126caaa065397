"""Keeps the stored history intact, even if a run is killed.

asv writes its files in place, so a run that is killed leaves empty files. asv then stops at every file that it cannot
read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asv.console import log
from asv.util import UserError
from filelock import FileLock, Timeout

from kernelwatch.store import samples, whole

#: The lock of a folder of results, which asv and `kernelwatch.store.accept` leave alone.
LOCK = "run.lock"

#: Suffix of a file that could not be read.
UNREADABLE = ".unreadable"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock and repair a folder of results. If another run holds the lock, say so once and wait until it ends.

    The system frees the lock of a process that is killed.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        log.warning(f"{folder} is in use by another run; waiting until it ends")
        lock.acquire()
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        mend(folder)
        yield
    finally:
        lock.release()


def write_json(path: str, data: dict[str, Any], api_version: int | None = None, compact: bool = False) -> None:
    """Write a JSON file as `asv.util.write_json` does, which this replaces, but completely or not at all.

    A compact one has no indentation, and the order of `data`; `api_version` is stored with it as "version".
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    stored = data if api_version is None else {**data, "version": api_version}
    stored = samples.pack(stored) if "result_columns" in stored else stored
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 4, "sort_keys": True}
    whole.write(target, json.dumps(stored, **layout))


def problem(path: Path) -> str | None:
    """Why asv cannot read a JSON file of its own; None if it can."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}" if path.stat().st_size else "is empty"
    return None if isinstance(content, dict) else "holds no JSON object"


def set_aside(path: Path) -> bool:
    """Move a file that asv cannot read to a name that asv leaves alone, and say so; whether it was moved."""
    why = problem(path) if path.exists() else None
    if why is None:
        return False
    names = (f"{path.name}{UNREADABLE}{n or ''}" for n in itertools.count())
    aside = next(each for each in map(path.with_name, names) if not each.exists())
    path.rename(aside)
    log.warning(f"{path} {why}; it is kept as {aside.name}, and the run goes on without it")
    return True


def mend(folder: Path) -> None:
    """Set aside what is unreadable, and clear away what was not finished."""
    for path in sorted(folder.rglob("*.json")):
        set_aside(path)
    for path in folder.rglob(f"*.*.[0-9]*{whole.UNFINISHED}"):
        path.unlink()  # what it was to replace is as it was
