"""A folder of its own for all that a run and its processes write to TMPDIR; what killed runs left is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO
from unittest import mock

from kernelwatch import project
from kernelwatch.mortal import RUN

#: How the folders' names begin, as they began before the library had a name, and the lock that a run holds in its own.
PREFIX, OLD, LOCK = "kernelwatch-", "coalescing-watch-", "lock"


@contextmanager
def of_a_run() -> Iterator[Path]:
    """Clear away what killed runs left, and let this run's processes write into a folder that goes with it."""
    clear(Path(tempfile.gettempdir()))
    lock = None
    while lock is None:  # another run may clear the folder away before it is locked
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _locked(folder)
    names = {"TMPDIR": str(folder), RUN: str(os.getpid()), project.VARIABLE: str(project.ROOT)}
    with (
        lock,
        mock.patch.object(tempfile, "tempdir", str(folder)),
        mock.patch.dict(os.environ, names),
    ):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def clear(parent: Path) -> None:
    """Remove the folders of runs that are over: the system has freed their locks."""
    for folder in (*parent.glob(f"{PREFIX}*"), *parent.glob(f"{OLD}*")):
        with suppress(OSError):  # another user's
            lock = _locked(folder)
            if lock is not None:
                with lock:
                    shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> IO[bytes] | None:
    """Lock a folder; return what holds the lock, or None if another process holds it or has removed the folder."""
    with suppress(FileNotFoundError, BlockingIOError), ExitStack() as closing:
        lock = closing.enter_context((folder / LOCK).open("ab"))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock.fileno()).st_nlink:  # else it was removed after it was opened
            closing.pop_all()
            return lock
    return None
