"""Typed reading of stored files: a file or line that does not fit its model is reported and left out."""

from __future__ import annotations

import bisect
import fnmatch
import functools
import itertools
import json
import os
import re
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

#: A machine's folder of results by other compilers than those of asv's pages. A line is JSON as asv writes it: asv
#: reads no `.jsonl`, so its pages show one compiler.
COMPILERS_FOLDER = "compilers"

#: Bytes of a file. The largest stored so far take two megabytes.
LARGEST = 64 << 20


#: Nanoseconds after its last change from which on a folder's names are kept.
_SETTLED = 2_000_000_000


class UnreadableError(KernelwatchError, ValueError):
    """A file or a line is not as its model has it; the message begins with its place."""


def read_content(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableError if it cannot be read, or has more than LARGEST."""
    try:
        size = path.stat().st_size
        if size <= LARGEST:
            return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    raise UnreadableError(f"{path}: has {size} bytes, more than {LARGEST}")


def convert_model(value: object, model: type[M], where: object) -> M:
    """Return what was parsed as a model has it. Raises UnreadableError if it does not fit."""
    try:
        return msgspec.convert(value, model)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UnreadableError(f"{where}: {one_line(error)}") from None


def parse_json(path: Path) -> Any:
    """Return a file's JSON. Raises UnreadableError if it is none."""
    try:
        return json.loads(read_content(path))  # msgspec knows no NaN
    except UnreadableError:
        raise
    except (RecursionError, ValueError) as error:
        raise UnreadableError(f"{path}: is not JSON: {one_line(error)}") from None


def list_paths(folder: Path, pattern: str) -> list[Path]:
    """Return what a folder holds of such names, in their order; nothing if there is no folder."""
    names = _list_names(folder)
    prefix = re.split(r"[*?[]", pattern, maxsplit=1)[0]
    start, end = (bisect.bisect_left(names, bound) for bound in (prefix, f"{prefix}\U0010ffff"))
    return [folder / name for name in fnmatch.filter(names[start:end], pattern)]


def _list_names(folder: Path) -> Sequence[str]:
    """Return the sorted names of a folder; a review asks a hundred times for a few of thousands."""
    try:
        modified = folder.stat().st_mtime_ns
        # The system's clock for files ticks some times a second: a folder may change again within a tick.
        is_settled = time.time_ns() - modified > _SETTLED
        return _read_names(folder, modified) if is_settled else _read_names.__wrapped__(folder, modified)
    except OSError:
        return ()


@functools.lru_cache(maxsize=64)
def _read_names(folder: Path, _modified: int) -> Sequence[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def result_paths(folder: Path, commit: str = "") -> list[Path]:
    """Return the paths of asv's files of a machine, or of those of a commit; also of other compilers."""
    stem = f"{commit[:8] or '????????'}-*"
    paths = [*list_paths(folder, f"{stem}.json"), *list_paths(folder / COMPILERS_FOLDER, f"{stem}.jsonl")]
    names = (path for path in paths if models.RESULT_NAME.fullmatch(path.name))
    return sorted(names, key=lambda path: path.name)


def iter_files(folder: Path, commit: str = "") -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield asv's files of a machine, or of those of a commit: the path, the JSON, and what the model has of it."""
    return read_files(result_paths(folder, commit))


def read_files(paths: Iterable[Path]) -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield some of asv's files as `iter_files` does."""
    for path in paths:
        try:
            json_content = parse_json(path)
            yield path, json_content, convert_model(json_content, models.Document, path)
        except UnreadableError as error:
            report_omission(str(error))


def iter_documents(folder: Path, commit: str = "") -> Iterator[models.Document]:
    """Yield the results of a machine's folder, one for each commit and environment; those of a commit if it is named.

    Of a benchmark that several files of them have, the numbers that were measured last count.
    """
    return merge_files(folder, iter_files(folder, commit))


def merge_files(folder: Path, files: Iterable[tuple[Path, Any, models.Document]]) -> Iterator[models.Document]:
    """Yield the results of some files of a folder as `iter_documents` does."""
    for _, commit_files in itertools.groupby(files, lambda file: file[0].name[:8]):
        by_environment: dict[tuple[str, str], list[tuple[Any, models.Document]]] = {}
        for _, json_content, document in commit_files:
            by_environment.setdefault((document.commit_hash, document.env_name), []).append((json_content, document))
        for versions in by_environment.values():
            if len(versions) == 1:
                yield versions[0][1]
            else:
                yield convert_model(
                    result_rows.merge_documents(*(json_content for json_content, _ in versions)),
                    models.Document,
                    folder,
                )


def iter_lines(path: Path, model: type[M], word: str = "") -> Iterator[tuple[bytes, M]]:
    """Yield the lines of a record that hold a word, as bytes and as the model; none without a file.

    Lines without the word are not decoded. A torn line is reported all the same: it may have lost the word.
    """
    encoded_word = word.encode()
    if not path.exists():
        return
    for number, line in enumerate(read_content(path).splitlines(), start=1):
        is_whole = line.startswith(b"{") and line.rstrip().endswith(b"}")
        try:
            if line.strip() and (encoded_word in line or not is_whole):
                yield line, msgspec.json.decode(line, type=model)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            report_omission(f"{path}, line {number}: {one_line(error)}")


@functools.cache
def report_omission(why: str) -> None:
    """Report once that something is left out, and why."""
    print(f"left out: {why}", file=sys.stderr)
