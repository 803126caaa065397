"""Keeps the stored history intact, even if a run is killed.

asv writes its files in place, so a run that is killed leaves empty files. asv then stops at every file that it cannot
read.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from asv.console import log
from asv.util import UserError
from filelock import FileLock, Timeout

from kernelwatch.store import samples, whole
from kernelwatch.store.jsonl import UNREADABLE

#: The lock of a folder of results, and who holds it. Both are left alone by asv and by `kernelwatch.store.accept`.
LOCK, HOLDER = "run.lock", "run.holder"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock and repair a folder of results. If another run holds the lock, say so once and wait until it ends.

    The system frees the lock of a process that is killed.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    lock, holder = FileLock(folder / LOCK), folder / HOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        log.warning(f"{folder} is in use by {_text(holder) or 'another run'}; waiting until it ends")
        lock.acquire()
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        # Not into the lock itself, which older versions of filelock empty.
        whole.write(holder, f"process {os.getpid()} on {platform.node()} since {since}")
        mend(folder)
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:  # that run has just begun, or ends
        return ""


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
    names = itertools.chain([path.name + UNREADABLE], (f"{path.name}{UNREADABLE}.{n}" for n in itertools.count(2)))
    aside = next(each for each in map(path.with_name, names) if not each.exists())
    path.rename(aside)
    log.warning(f"{path} {why}; it is kept as {aside.name}, and the run goes on without it")
    return True


def mend(folder: Path) -> None:
    """Finish an acceptance that was killed, set aside what is unreadable, and clear away what was not finished."""
    for path in whole.finish(folder):
        log.warning(f"{path} was about to be accepted when that was killed; it is now")
    for path in sorted(folder.rglob("*.json")):
        set_aside(path)
    for path in folder.rglob(f"*.*.[0-9]*{whole.UNFINISHED}"):
        path.unlink()  # what it was to replace is as it was
