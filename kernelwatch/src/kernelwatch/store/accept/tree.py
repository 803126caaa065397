"""Which files there are, before any of them is opened."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from kernelwatch.store.accept.refusal import RefusedError, require

#: Bytes of a file and of all; the largest results stored so far take half a megabyte.
LARGEST, LARGEST_IN_ALL = 16 << 20, 256 << 20
#: Files in all; a machine has one a commit.
MOST = 10_000
#: Folders between the top and a file: the machine's.
_DEEPEST = 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def files(folder: Path) -> dict[str, Path]:
    """The files below a folder by their names in it, as "machine/file" or "file".

    Raises
    ------
    RefusedError
        A link, a device, a name that is not plain, a folder in a machine's folder, or too much of anything.
    """
    require(folder.is_dir() and not folder.is_symlink(), folder, "is no folder")
    found = dict(_below(folder, "", 0))
    require(len(found) <= MOST, folder, f"holds more than {MOST} files")
    total = sum(path.stat().st_size for path in found.values())
    require(total <= LARGEST_IN_ALL, folder, f"holds {total} bytes, more than {LARGEST_IN_ALL}")
    return found


def _below(folder: Path, prefix: str, deep: int) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        where = f"{prefix}{entry.name}"
        require(_NAME.fullmatch(entry.name), repr(where), "is no name for a file of results")
        facts = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            require(deep < _DEEPEST, where, "is a folder in a machine's folder")
            found += _below(Path(entry.path), f"{where}/", deep + 1)
        elif stat.S_ISREG(facts.st_mode):
            require(facts.st_size <= LARGEST, where, f"has {facts.st_size} bytes, more than {LARGEST}")
            found.append((where, Path(entry.path)))
        else:
            raise RefusedError(f"{where}: is a link or a device, not a file")
    return found
