"""A file that is written whole or not at all, whenever the process is killed and wherever the disk is full."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

#: How the names of files end that are still written; .gitignore knows it.
UNFINISHED = ".unfinished"


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """Give a file to write the new text of `path` into; it takes its place at the end, and not after an exception.

    The text is on the disk before the name is: a rename is atomic on POSIX, but may overtake what it names. The folder
    follows: a power cut after a rename may otherwise bring the old file back.
    """
    path = Path(os.path.realpath(path))  # through a link, as open does
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with unfinished.open("w", encoding="utf-8", errors="surrogateescape") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        sync(path.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write several files: all of them or, after any error, none.

    Whoever is killed between the first and the last leaves some, each of them whole.
    """
    with ExitStack() as cleared, ExitStack() as undone:
        for path, content in contents.items():
            new = _beside(path, "new")
            cleared.callback(new.unlink, missing_ok=True)
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            if path.exists():
                old = _beside(path, "old")
                cleared.callback(old.unlink, missing_ok=True)
                os.link(path, old)
                undone.callback(old.replace, path)
            else:
                undone.callback(path.unlink, missing_ok=True)
            _beside(path, "new").replace(path)
        for folder in {path.parent for path in contents}:
            sync(folder)
        undone.pop_all()


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{what}{UNFINISHED}")
