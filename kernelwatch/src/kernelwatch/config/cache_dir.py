"""The user's cache folders. In a container, the home folder may be missing or not writable."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock


#: The environment variable that names the folder of caches.
CACHE = "KERNELWATCH_CACHE"

#: Content of a file that tests a folder. It is as large as a cubin, because a full disk still accepts an empty file.
_TRIAL_BYTES = bytes(1 << 16)


def has_home() -> bool:
    """Return whether HOME or the system's list of users has a home folder for the user."""
    return os.path.isabs(os.path.expanduser("~"))  # noqa: PTH111, PTH117 -- Path.home raises without one


def cache_folder(name: str) -> Path:
    """Return a folder for cached files: in KERNELWATCH_CACHE if it is set, else in the user's cache folder.

    Without XDG_CACHE_HOME and a home folder, return a path that cannot exist.
    """
    if folder := os.environ.get(CACHE):
        return Path(folder, name)
    user_folder = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if has_home() else "")
    return Path(user_folder, "coalescing-watch", name) if user_folder else Path(os.devnull, "no home folder", name)


def find_problem(folder: Path) -> str | None:
    """Return why files cannot be written to a folder, or None. A missing folder is created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_TRIAL_BYTES)
    except OSError as error:
        return f"{folder} cannot be written: {error}"
    return None


def make_file_lock(path: Path) -> FileLock:
    """Return a lock on a file. The system releases the lock when the holding process ends. The file may remain."""
    from filelock import FileLock  # noqa: PLC0415 -- PyCUDA's wheel is built without installed packages

    return FileLock(path, fallback_to_soft=False)


def acquire_lock(lock: FileLock, *, blocking: bool = True) -> bool:
    """Acquire a lock; return whether the file system has locks.

    Raises Timeout for a taken lock if not `blocking`, OSError if the lock's file cannot be written.
    """
    try:
        lock.acquire(blocking=blocking)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True
