"""Files that are written whole or not at all, whenever the process is killed and wherever the disk is full."""

from __future__ import annotations

import os
from pathlib import Path

#: How the names of files end that are still written; .gitignore knows it.
UNFINISHED = ".unfinished"


def write(path: Path, content: str | bytes) -> None:
    """Write a file, through a link as open does. What stood there stays after an error, or if the process is killed.

    The content is on the disk before the name is: a rename is atomic on POSIX, but may overtake what it names. The
    folder follows: a power cut after a rename may otherwise bring the old file back.
    """
    path = Path(os.path.realpath(path))
    new = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with new.open("wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
