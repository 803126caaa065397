"""An index of a machine's files of results, in the user's cache, so that a review opens only its commits' files.

A changed file is recognised by its size, time or inode. If the cache is missing or stale, the files are read again.
"""

import contextlib
import hashlib
import itertools
import time
from collections import defaultdict
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

#: Maximum age of a cached file, and minimum time between two searches for older ones, in seconds.
_MAX_AGE, _SEARCH_INTERVAL = 30 * 86_400, 86_400

#: A file's size, modification time in nanoseconds, and inode. Writing the file changes them.
Stamp = tuple[int, int, int]


class IndexEntry(msgspec.Struct, array_like=True, frozen=True):
    """The facts of a file of results: its stamp, commit, environment, commit's date, and environment variables."""

    stamp: Stamp
    commit: str
    environment: str
    date: int
    variables: dict[str, str]


def list_results(folder: Path) -> dict[Path, IndexEntry]:
    """Return path -> entry of the readable files of a machine's results, sorted by name; open only changed files."""
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
    """Return a file's document, in which null may stand for NaN; None if the file is not readable."""
    with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError, reading.UnreadableError):
        content = reading.read_content(path)
        strings = content.split(b'"')[1::2]  # right only without escapes
        if b"\\" not in content and not any(b"NaN" in string for string in strings):
            # This parser is faster, but rejects NaN.
            return msgspec.json.decode(content.replace(b"NaN", b"null"), type=models.Document)
    return next((document for _, _, document in reading.read_files([path])), None)


def stamp_file(path: Path) -> Stamp:
    """Return the size, time and inode of a file; zeros for a missing one."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


class CommitStamps:
    """The stamps of the files on which the noise between a machine's commits depends.

    These are the machine's own files, and other machines' hashes of machine code. Digests also depend on the content of
    the list of benchmarks and of the code.

    Parameters
    ----------
    folder : Path
        The machine's folder of results.
    root : Path
        The project's folder; the noise depends on its code.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._files = group_files(folder)
        described = digest_file(folder.parent / reading.BENCHMARKS_FILE)
        self._shared = f"{digest_code(root)} {described} {_list_stamps(self._files[''])}"

    def digest_commits(self, *commits: str) -> str:
        """Return a digest of the stamps of all files about some commits, and of the code that reads the files."""
        return digest_texts(self._shared, *(f"{commit} {_list_stamps(self._files[commit[:8]])}" for commit in commits))


def group_files(machine: Path) -> defaultdict[str, list[Path]]:
    """Return a machine's own files and other machines' hashes of machine code, by the commit's first eight digits.

    The files of several commits are under an empty text.
    """
    groups: defaultdict[str, list[Path]] = defaultdict(list)
    for folder, subfolder in itertools.product(reading.list_paths(machine.parent), (".", reading.COMPILERS_FOLDER)):
        for path in reading.list_paths(folder / subfolder, suffix="" if folder == machine else CUBINS_FILE):
            is_of_commit = path.name[8:9] == "-"
            if is_of_commit or path.suffix == ".jsonl":  # neither machine.json nor a folder
                groups[path.name[:8] if is_of_commit else ""].append(path)
    return groups


def _list_stamps(paths: Iterable[Path]) -> list[tuple[str, Stamp]]:
    return [(str(path), stamp_file(path)) for path in paths]


def digest_texts(*texts: str) -> str:
    """Return the hexadecimal SHA-256 of some texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file; empty if it is missing."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def digest_code(root: Path) -> str:
    """Return a digest of all Python files of this library and of the project's code folders."""
    folders = (_LIBRARY, *(root / folder for folder in settings.code_folders()))
    return digest_texts(*map(digest_file, sorted({path for folder in folders for path in folder.rglob("*.py")})))


def cache_path(name: str, folder: Path) -> Path:
    """Return the path of the cached file `name` for the machine with this folder of results."""
    return cache_dir.cache_folder("index") / f"{digest_texts(str(folder.resolve()))}-{name}.msgpack"


def load_cached(path: Path, model: type[M]) -> M | None:
    """Return the content of a cached file; None if it is missing, incomplete or does not fit the model."""
    with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
        return msgspec.msgpack.decode(path.read_bytes(), type=model)
    return None


def save_cached(path: Path, content: object) -> None:
    """Write a cached file. Errors are ignored: the next review then reads the results again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(path, msgspec.msgpack.encode(content), is_durable=False)


def _remove_old(folder: Path) -> None:
    # At most once a day: there may be tens of thousands of files.
    stamp = folder / "looked-for-old-files"
    with contextlib.suppress(OSError):
        if stamp.exists() and abs(time.time() - stamp.stat().st_mtime) < _SEARCH_INTERVAL:
            return
        stamp.touch()
        for path in folder.glob("*.msgpack"):
            if time.time() - path.stat().st_mtime > _MAX_AGE:
                path.unlink()
