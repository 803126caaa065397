"""The user's own files. A container's user may have no home folder, or one that cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from filelock import FileLock

#: The environment variable that names the folder of caches.
CACHE = "KERNELWATCH_CACHE"

#: Written to try a folder. It is as long as a cubin: on a full disk, an empty file could still be made.
_TRIAL = bytes(1 << 16)


def is_there() -> bool:
    """Whether the user has a home folder, in HOME or by the system's list of users."""
    return os.path.isabs(os.path.expanduser("~"))  # noqa: PTH111, PTH117 -- Path.home raises where there is none


def cache(name: str) -> Path:
    """Return a folder of what can be made again: below the one of KERNELWATCH_CACHE, else below the user's.

    Without a home folder it is a path at which nothing can be.
    """
    if named := os.environ.get(CACHE):
        return Path(named, name)
    users = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if is_there() else "")
    return Path(users, "coalescing-watch", name) if users else Path(os.devnull, "no home folder", name)


def problem(folder: Path) -> str | None:
    """Return why files cannot be written into a folder, which is made if need be; None if they can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_TRIAL)
    except OSError as error:
        return f"{folder} cannot be written: {error}"
    return None


def file_lock(path: Path) -> FileLock:
    """Return a lock that ends with its process; a file's existence, which would outlive that, is none."""
    return FileLock(path, fallback_to_soft=False)


def acquire(lock: FileLock, *, blocking: bool = True) -> bool:
    """Acquire a lock; return whether the file system has locks. Raises as `FileLock.acquire`."""
    try:
        lock.acquire(blocking=blocking)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True
