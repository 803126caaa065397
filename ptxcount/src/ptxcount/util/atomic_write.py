"""Atomic writes: a file is written completely or not at all, even if the process is killed or the disk is full."""

import os
import shutil
import threading
from pathlib import Path

#: Suffix of unfinished files; .gitignore has it.
UNFINISHED = ".unfinished"


def write(path: Path, content: str | bytes, *, is_durable: bool = True) -> None:
    """Write a file atomically; encode text as UTF-8. Mode bits stay. For a symbolic link, write the link's target.

    The old content stays after an error, or if the process is killed. A durable write also survives a power cut; a
    pipe or a device is written directly. Pass ``is_durable=False`` for caches: nothing is flushed to disk, and a pipe
    or a device is replaced.
    """
    content = content if isinstance(content, bytes) else content.encode("utf-8")
    if is_durable and path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    new = path.with_name(f"{path.name}.{threading.get_native_id()}{UNFINISHED}")
    new.unlink(missing_ok=True)  # left by a killed process with the same id
    try:
        with new.open("xb") as file:  # fails on a link that another user has put there
            file.write(content)
            file.flush()
            if is_durable:  # the rename, atomic on POSIX, may reach the disk before the content
                os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    if is_durable:  # otherwise the old file may come back
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
