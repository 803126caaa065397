"""A folder of its own for all that a run and its processes write to TMPDIR; what killed runs left is removed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from filelock import FileLock, Timeout

from benchmarks.mortal import RUN

#: How the folders' names begin, and the lock that a run holds in its own.
PREFIX, LOCK = "coalescing-watch-", "lock"


@contextmanager
def of_a_run() -> Iterator[Path]:
    """Clear away what killed runs left, and let this run's processes write into a folder that goes with it."""
    clear(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    names = {"TMPDIR": str(folder), RUN: str(os.getpid())}
    with (
        FileLock(folder / LOCK),
        mock.patch.object(tempfile, "tempdir", str(folder)),
        mock.patch.dict(os.environ, names),
    ):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def clear(parent: Path) -> None:
    """Remove the folders of runs that are over: the system has freed their locks."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(Timeout, OSError), FileLock(folder / LOCK).acquire(blocking=False):
            shutil.rmtree(folder, ignore_errors=True)
