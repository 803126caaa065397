"""The user's folders for caches. A container's user may have no home folder, or one that cannot be written."""

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

#: Content of a trial file, as long as a cubin: a full disk still holds an empty file.
_TRIAL_BYTES = bytes(1 << 16)


def has_home() -> bool:
    """Return whether the user has a home folder, in HOME or by the system's list of users."""
    return os.path.isabs(os.path.expanduser("~"))  # noqa: PTH111, PTH117 -- Path.home raises where there is none


def cache_folder(name: str) -> Path:
    """Return a folder for files that can be made again: below KERNELWATCH_CACHE, else below the user's caches.

    Without a home folder it is a path that cannot exist.
    """
    if folder := os.environ.get(CACHE):
        return Path(folder, name)
    user_folder = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if has_home() else "")
    return Path(user_folder, "coalescing-watch", name) if user_folder else Path(os.devnull, "no home folder", name)


def find_problem(folder: Path) -> str | None:
    """Return why files cannot be written into a folder, which is created if need be; None if they can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_TRIAL_BYTES)
    except OSError as error:
        return f"{folder} cannot be written: {error}"
    return None


def make_file_lock(path: Path) -> FileLock:
    """Return a lock that ends with its process, unlike a lock by the existence of a file."""
    from filelock import FileLock  # noqa: PLC0415 -- PyCUDA's wheel is built where nothing is installed

    return FileLock(path, fallback_to_soft=False)


def acquire_lock(lock: FileLock, *, blocking: bool = True) -> bool:
    """Acquire a lock; return whether the file system has locks. Raises as `FileLock.acquire`."""
    try:
        lock.acquire(blocking=blocking)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True
