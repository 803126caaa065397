"""A folder for what a run and its processes write to TMPDIR. It lies in the checkout, and goes with the run.

A killed run leaves its folder; the next run removes it. It removes nothing else: only folders in `PARENT`, which nobody
else can write to, that are this user's and have the mark of a run.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest import mock

from kernelwatch import home, project
from kernelwatch.mortal import RUN

#: Where the folders are.
PARENT = project.ROOT / ".asv" / "scratch"

#: The file that a run keeps locked in its folder.
MARK = "kernelwatch-run"

#: The system takes 107 bytes as the path of a socket; asv's has the longest.
_LONGEST = 107 - len("/asv-forkserver-12345678/socket")


@contextmanager
def of_a_run(parent: Path = PARENT) -> Iterator[Path]:
    """Give this run and its processes a temporary folder, and remove those of killed runs.

    It is in `parent`, unless that cannot be used: then in TMPDIR, where nothing is cleared away.
    """
    usable = _is_usable(parent)
    if usable:
        clear(parent)
    with ExitStack() as closing:
        folder = Path(tempfile.mkdtemp(dir=parent if usable else None, prefix="" if usable else "kernelwatch-"))
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        # It bears the name of the mark once it is locked, so no other run finds it unlocked.
        lock = os.open(folder / "unmarked", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        closing.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "unmarked").rename(folder / MARK)
        names = {"TMPDIR": str(folder), RUN: str(os.getpid()), project.VARIABLE: str(project.ROOT)}
        if not home.is_there():
            names["HOME"] = str(folder)  # pip needs one
        closing.enter_context(mock.patch.object(tempfile, "tempdir", str(folder)))
        closing.enter_context(mock.patch.dict(os.environ, names))
        yield folder


def clear(parent: Path) -> None:
    """Remove the folders of runs that are over: the system has freed their locks."""
    for folder in parent.iterdir():
        with suppress(OSError), ExitStack() as closing:  # none of a run, or of one that goes on
            at = closing.enter_context(_opened(folder, os.O_RDONLY | os.O_DIRECTORY))
            lock = closing.enter_context(_opened(MARK, os.O_RDWR | os.O_NONBLOCK, at))
            if stat.S_ISREG(os.fstat(lock).st_mode):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def _is_usable(parent: Path) -> bool:
    """Make the folder of the folders; return whether it is this user's alone, and sockets have room in it."""
    with suppress(OSError):
        parent.parent.mkdir(parents=True, exist_ok=True)
        parent.mkdir(mode=0o700, exist_ok=True)
        with _opened(parent, os.O_RDONLY | os.O_DIRECTORY):
            name = str(parent / "12345678")  # nvcc hands it to a shell
            return len(name) <= _LONGEST and shlex.quote(name) == name and os.access(parent, os.W_OK)
    return False


@contextmanager
def _opened(path: str | Path, flags: int, at: int | None = None) -> Iterator[int]:
    """Open a file of this user's that no other can read or write, and no link; raise OSError of any other."""
    opened = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(f"{path} is not this user's alone")
        yield opened
    finally:
        os.close(opened)
