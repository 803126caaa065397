"""Files that are written whole or not at all, whenever the process is killed and wherever the disk is full."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

#: How the names of files end that are still written; .gitignore knows it.
UNFINISHED = ".unfinished"

#: What the mark is called of files that are all written, and take their places.
_MARK = "all"


def write(path: Path, text: str) -> None:
    """Write a file, through a link as open does. What stood there stays after an error, or if the process is killed.

    The text is on the disk before the name is: a rename is atomic on POSIX, but may overtake what it names. The folder
    follows: a power cut after a rename may otherwise bring the old file back.
    """
    path = Path(os.path.realpath(path))
    with ExitStack() as cleared:
        new = _written(path, text.encode(errors="surrogateescape"), cleared)
        new.replace(path)
    sync([path])


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write several files: all of them or, after any error, none.

    Whoever is killed between the first and the last leaves some, each of them whole, and a mark for `finish`.
    """
    if not contents:
        return
    mark = _beside(next(iter(contents)), _MARK)
    with ExitStack() as cleared, ExitStack() as undone, ExitStack() as unmarked:
        written = {path: _written(path, content, cleared) for path, content in contents.items()}
        sync(contents)
        unmarked.callback(mark.unlink, missing_ok=True)  # first of all: what is undone is not to be finished
        mark.touch()
        sync([mark])
        for path, new in written.items():
            if path.exists():
                old = _beside(path, "old")
                cleared.callback(old.unlink, missing_ok=True)
                os.link(path, old)
                undone.callback(old.replace, path)
            else:
                undone.callback(path.unlink, missing_ok=True)
            new.replace(path)
        sync(contents)
        undone.pop_all()


def finish(folder: Path) -> list[Path]:
    """Give the files their places that a `write_all` did not come to, which was killed as it did so; return them."""
    done: list[Path] = []
    for mark in folder.rglob(f"*.{_MARK}{UNFINISHED}"):
        *_, process, _, _ = mark.name.split(".")
        ending = f".{process}.new{UNFINISHED}"
        for new in folder.rglob(f"*{ending}"):
            done.append(new.replace(new.with_name(new.name.removesuffix(ending))))
        sync(done)
        mark.unlink()
    return done


def sync(paths: Iterable[Path]) -> None:
    """Bring the names of files to the disk."""
    for folder in {path.parent for path in paths}:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _written(path: Path, content: bytes, cleared: ExitStack) -> Path:
    """Return a file beside another one with its new content, on the disk; it is gone once `cleared` is closed."""
    new = _beside(path, "new")
    cleared.callback(new.unlink, missing_ok=True)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return new


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{what}{UNFINISHED}")
