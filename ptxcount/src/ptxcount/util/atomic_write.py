"""Files that are written whole or not at all, whenever the process is killed and wherever the disk is full."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

#: Suffix of files that are still written; .gitignore knows it.
UNFINISHED = ".unfinished"


def write(path: Path, content: str | bytes, *, is_kept: bool = True) -> None:
    """Write a file, text as UTF-8, through a link as open does.

    What stood there stays after an error, or if the process is killed. The content is on the disk before the name is: a
    rename is atomic on POSIX, but may overtake what it names. The folder follows: a power cut after a rename may
    otherwise bring the old file back. Mode bits stay; what is no regular file, a pipe say, is written to. In a cache,
    whose files need not be kept, that is replaced, and the disk is not waited for.
    """
    content = content if isinstance(content, bytes) else content.encode("utf-8")
    if is_kept and path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    new = path.with_name(f"{path.name}.{threading.get_native_id()}{UNFINISHED}")
    new.unlink(missing_ok=True)  # of a process of that number which was killed
    try:
        with new.open("xb") as file:  # never through a link that somebody else has put there
            file.write(content)
            file.flush()
            if is_kept:
                os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    if is_kept:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
