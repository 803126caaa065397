"""An index of a machine's files of results, in the user's cache: a review then opens the files of its commits alone.

Files are recognised by name, size, time and inode. Without the cache, and with a stale one, they are read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelwatch.config import cache_dir, settings
from kernelwatch.store import models, reading
from kernelwatch.store.record import CUBINS_FILE
from ptxcount.util import atomic_write

M = TypeVar("M")

_LIBRARY = Path(__file__).parents[1]

#: Seconds after which a file of the cache is removed, and between two looks for such files.
_OLD, _DAY = 30 * 86_400, 86_400

#: A file's size, modification time in nanoseconds, and inode. A file that is written again has another.
Stamp = tuple[int, int, int]


class IndexEntry(msgspec.Struct, array_like=True, frozen=True):
    """The commit and environment that a file of results is of."""

    stamp: Stamp
    commit: str
    environment: str
    date: int
    variables: dict[str, str]


def list_results(folder: Path) -> dict[Path, IndexEntry]:
    """Return the readable files of a machine's results, in the order of their names; only files new to it are read."""
    cache_file = cache_path("results", folder)
    cached = load_cached(cache_file, dict[str, IndexEntry]) or {}
    entries: dict[str, IndexEntry] = {}
    for path in reading.result_paths(folder):
        name, stamp = str(path.relative_to(folder)), stamp_file(path)
        entry = cached.get(name)
        if entry is None or entry.stamp != stamp or stamp[0] > reading.LARGEST:
            entry = _read_entry(path, stamp)
        if entry is not None:
            entries[name] = entry
    if entries != cached:
        save_cached(cache_file, entries)
        _remove_old(cache_file.parent)
    return {folder / name: entry for name, entry in entries.items()}


def _read_entry(path: Path, stamp: Stamp) -> IndexEntry | None:
    if (document := _read_document(path)) is None:
        return None
    return IndexEntry(stamp, document.commit_hash, document.env_name, document.date, document.env_vars)


def _read_document(path: Path) -> models.Document | None:
    """Return a file's document, whose skipped configurations may count as failed ones; None if it is not readable."""
    with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError, reading.UnreadableError):
        content = reading.read_content(path)
        # An escape may be half a letter or a quote. Without any, every second part between quotes is a text.
        if b"\\" not in content and not any(b"NaN" in text for text in content.split(b'"')[1::2]):
            # The fast parser knows no NaN. It checks the same model.
            return msgspec.json.decode(content.replace(b"NaN", b"null"), type=models.Document)
    return next((document for _, _, document in reading.read_files([path])), None)


def stamp_file(path: Path) -> Stamp:
    """Return the values that change whenever a file is written; zeros where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


class CommitStamps:
    """The stamps of all files on the commits of a machine: its own, and other machines' hashes of machine code.

    Parameters
    ----------
    folder : Path
        The machine's folder among the results of all machines.
    root : Path
        The folder of the project, whose code the reviews depend on.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._own = _list_folders(folder)
        others = (path for path in reading.list_paths(folder.parent, "*") if path != folder)
        self._others = [place for path in others for place in _list_folders(path)]
        shared = [path for own in self._own for path in reading.list_paths(own, "*.jsonl") if path.name[8:9] != "-"]
        shared += [other / CUBINS_FILE for other in self._others]
        self._shared = (
            f"{digest_code(root)} {digest_file(folder.parent / reading.BENCHMARKS_FILE)} {_list_stamps(shared)}"
        )

    def digest_commits(self, *commits: str) -> str:
        """Return a digest of all files on some commits, and of the code that reads them."""
        return digest_texts(self._shared, *(f"{commit} {self._list_commit_stamps(commit)}" for commit in commits))

    def _list_commit_stamps(self, commit: str) -> list[tuple[str, Stamp]]:
        prefix = f"{commit[:8]}-*"
        cubins = (path for other in self._others for path in reading.list_paths(other, f"{prefix}{CUBINS_FILE}"))
        own = (path for folder in self._own for path in reading.list_paths(folder, prefix))
        return _list_stamps([*own, *cubins])


def _list_folders(machine: Path) -> list[Path]:
    """Return the folders of a machine's results: its own, and that of other compilers."""
    return [machine, machine / reading.COMPILERS_FOLDER]


def _list_stamps(paths: Iterable[Path]) -> list[tuple[str, Stamp]]:
    return [(str(path), stamp_file(path)) for path in paths]


def digest_texts(*texts: str) -> str:
    """Return the SHA-256 of some texts, hexadecimal."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, hexadecimal; empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def digest_code(root: Path) -> str:
    """Return the digest of this library's code, and of the project's."""
    folders = (_LIBRARY, *(root / folder for folder in settings.code_folders()))
    return digest_texts(*map(digest_file, sorted({path for folder in folders for path in folder.rglob("*.py")})))


def cache_path(name: str, folder: Path) -> Path:
    """Return the file of the cache that holds something of a machine's folder."""
    return cache_dir.cache_folder("index") / f"{digest_texts(str(folder.resolve()))}-{name}.msgpack"


def load_cached(path: Path, model: type[M]) -> M | None:
    """Return the content of a file of the cache; None where it is missing, torn or of another form."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
        return msgspec.msgpack.decode(path.read_bytes(), type=model)
    return None


def save_cached(path: Path, content: object) -> None:
    """Write a file of the cache; without a cache folder the next review reads the results again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, msgspec.msgpack.encode(content), is_kept=False)


def _remove_old(folder: Path) -> None:
    """Remove old files of the cache, once a day: it may hold ten thousands."""
    stamp = folder / "looked-for-old-files"
    with contextlib.suppress(OSError):
        if stamp.exists() and abs(time.time() - stamp.stat().st_mtime) < _DAY:
            return
        stamp.touch()
        for path in folder.glob("*.msgpack"):
            if time.time() - path.stat().st_mtime > _OLD:
                path.unlink()
