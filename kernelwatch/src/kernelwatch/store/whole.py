"""A file that is written whole or not at all, whenever the process is killed and wherever the disk is full."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

#: How the names of files end that are still written; .gitignore knows it.
UNFINISHED = ".unfinished"

#: What the mark is called of files that are all written, and take their places.
_MARK = "all"


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

    Whoever is killed between the first and the last leaves some, each of them whole, and a mark for `finish`.
    """
    if not contents:
        return
    mark = _beside(next(iter(contents)), _MARK)
    with ExitStack() as cleared, ExitStack() as undone, ExitStack() as unmarked:
        for path, content in contents.items():
            new = _beside(path, "new")
            cleared.callback(new.unlink, missing_ok=True)
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for folder in {path.parent for path in contents}:
            sync(folder)
        unmarked.callback(mark.unlink, missing_ok=True)  # first of all: what is undone is not to be finished
        with mark.open("wb"):
            sync(mark.parent)
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


def finish(folder: Path) -> list[Path]:
    """Give the files their places that a `write_all` did not come to, which was killed as it did so; return them."""
    done: list[Path] = []
    for mark in folder.rglob(f"*.{_MARK}{UNFINISHED}"):
        *_, process, _, _ = mark.name.split(".")
        ending = f".{process}.new{UNFINISHED}"
        for new in folder.rglob(f"*{ending}"):
            done.append(new.replace(new.with_name(new.name.removesuffix(ending))))
        for parent in {path.parent for path in done}:
            sync(parent)
        mark.unlink()
    return done


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{what}{UNFINISHED}")
