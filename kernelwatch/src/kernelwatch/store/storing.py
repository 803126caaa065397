"""Keeps the stored history intact, even if a run is killed: asv itself writes its files in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asv.console import log
from asv.util import UserError
from filelock import FileLock, Timeout

from ptxcount import whole

#: The lock of a folder of results, which asv leaves alone.
LOCK = "run.lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder of results, and clear away what was not finished there.

    If another run holds the lock, say so once and wait until it ends.

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
        for path in folder.rglob(f"*.*.[0-9]*{whole.UNFINISHED}"):
            path.unlink()  # what it was to replace is as it was
        yield
    finally:
        lock.release()
