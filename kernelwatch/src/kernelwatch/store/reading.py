"""Typed reading of stored files. Iterators report and leave out files and lines that do not fit their models."""

import bisect
import functools
import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelwatch.error_text import one_line
from kernelwatch.errors import KernelwatchError
from kernelwatch.store import models, result_rows

M = TypeVar("M")

#: asv's list of benchmarks.
BENCHMARKS_FILE = "benchmarks.json"

#: A machine's subfolder for results of further compilers. These files have asv's JSON but end in `.jsonl`, which asv
#: does not read. So asv's pages show one compiler.
COMPILERS_FOLDER = "compilers"

#: Maximum number of bytes of a file.
LARGEST = 64 << 20

#: Nanoseconds after a folder's last change before its names are cached.
_SETTLED = 2_000_000_000


class UnreadableError(KernelwatchError, ValueError):
    """A file or a line cannot be read or does not fit its model. The message begins with the file's path."""


def read_content(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableError if it cannot be read, or has more than LARGEST."""
    try:
        size = path.stat().st_size
        if size <= LARGEST:
            return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    raise UnreadableError(f"{path}: has {size} bytes; at most {LARGEST} are read")


def convert_model(value: object, model: type[M], where: object) -> M:
    """Return a parsed value as an instance of a model. Raises UnreadableError if it does not fit."""
    try:
        return msgspec.convert(value, model)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UnreadableError(f"{where}: {one_line(error)}") from None


def parse_json(path: Path) -> Any:
    """Return a file's parsed JSON. Raises UnreadableError if it cannot be read or is not JSON."""
    try:
        return json.loads(read_content(path))  # msgspec does not accept NaN
    except UnreadableError:
        raise
    except (RecursionError, ValueError) as error:
        raise UnreadableError(f"{path}: is not JSON: {one_line(error)}") from None


def list_paths(folder: Path, prefix: str = "", suffix: str = "") -> list[Path]:
    """Return the sorted paths of a folder whose names begin and end with these texts; none if it is missing."""
    names = _list_names(folder)
    start, end = (bisect.bisect_left(names, bound) for bound in (prefix, f"{prefix}\U0010ffff"))
    return [folder / name for name in names[start:end] if name.endswith(suffix)]


def _list_names(folder: Path) -> Sequence[str]:
    """Return the sorted names in a folder, from a cache, since a review needs them 100 times; none if it is missing."""
    try:
        modified = folder.stat().st_mtime_ns
        # The clock of file times is coarse: a folder may change again without a new time.
        is_settled = time.time_ns() - modified > _SETTLED
        return _read_names(folder, modified) if is_settled else _read_names.__wrapped__(folder, modified)
    except OSError:
        return ()


@functools.lru_cache(maxsize=64)
def _read_names(folder: Path, _modified: int) -> Sequence[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def result_paths(folder: Path, commit: str = "") -> list[Path]:
    """Return the paths of a machine's files of asv, for all its compilers.

    With `commit`, return only those of commits with the same first eight digits, almost always of this commit.
    """
    paths = [
        *list_paths(folder, commit[:8], ".json"),
        *list_paths(folder / COMPILERS_FOLDER, commit[:8], ".jsonl"),
    ]
    names = (path for path in paths if models.RESULT_NAME.fullmatch(path.name))
    return sorted(names, key=lambda path: path.name)


def iter_files(folder: Path, commit: str = "") -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield path, JSON and document of each readable file of `result_paths`."""
    return read_files(result_paths(folder, commit))


def read_files(paths: Iterable[Path]) -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield path, parsed JSON and document of asv's files. Unreadable files are reported and left out."""
    for path in paths:
        try:
            json_content = parse_json(path)
            yield path, json_content, convert_model(json_content, models.Document, path)
        except UnreadableError as error:
            report_omission(str(error))


def iter_documents(folder: Path, commit: str = "") -> Iterator[models.Document]:
    """Yield one document per commit and environment, merged from the files of `result_paths`."""
    return merge_files(folder, iter_files(folder, commit))


def find_document(folder: Path, commit: str, environment: str) -> models.Document | None:
    """Return a machine's document of a commit in an environment; None if there is none."""
    for document in iter_documents(folder, commit):
        if (document.commit_hash, document.env_name) == (commit, environment):
            return document
    return None


def merge_files(folder: Path, files: Iterable[tuple[Path, Any, models.Document]]) -> Iterator[models.Document]:
    """Yield one document per commit and environment, merged from files as `read_files` yields them.

    Files of one commit must be adjacent. Raises UnreadableError if a merged document does not fit its model.
    """
    for _, commit_files in itertools.groupby(files, lambda file: file[0].name[:8]):
        by_environment: dict[tuple[str, str], list[tuple[Any, models.Document]]] = {}
        for _, json_content, document in commit_files:
            by_environment.setdefault((document.commit_hash, document.env_name), []).append((json_content, document))
        for versions in by_environment.values():
            contents, documents = zip(*versions, strict=True)
            is_single = len(documents) == 1
            merged = None if is_single else result_rows.merge_documents(*contents)
            yield documents[0] if is_single else convert_model(merged, models.Document, folder)


def iter_lines(path: Path, model: type[M], word: str = "") -> Iterator[tuple[bytes, M]]:
    """Yield the lines of a record's file that contain a word, as bytes and as the model; none if the file is missing.

    Lines that do not fit the model are reported and left out. Raises UnreadableError if the file cannot be read.
    """
    encoded_word = word.encode()
    if not path.exists():
        return
    for number, line in enumerate(read_content(path).splitlines(), start=1):
        is_whole = line.startswith(b"{") and line.rstrip().endswith(b"}")  # a torn line may have lost the word
        try:
            if line.strip() and (encoded_word in line or not is_whole):
                yield line, msgspec.json.decode(line, type=model)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            report_omission(f"{path}, line {number}: {one_line(error)}")


@functools.cache
def report_omission(reason: str) -> None:
    """Print on standard error, once, why a file or line is left out."""
    print(f"left out: {reason}", file=sys.stderr)
