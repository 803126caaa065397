"""What is stored, typed: a file, or a line of a record, that does not fit its model is named and left out."""

from __future__ import annotations

import functools
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelwatch.error_text import one_line
from kernelwatch.store import models, rows

M = TypeVar("M")

#: asv's list of benchmarks.
SUITE = "benchmarks.json"

#: Bytes of a file. The largest stored so far take two megabytes.
LARGEST = 64 << 20


class UnreadableError(ValueError):
    """A file or a line is not as its model has it; the message begins with its place."""


def content(path: Path) -> bytes:
    """Return a file's bytes. Raises UnreadableError if it cannot be read, or has more than LARGEST."""
    try:
        size = path.stat().st_size
        if size <= LARGEST:
            return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    raise UnreadableError(f"{path}: has {size} bytes, more than {LARGEST}")


def convert(value: object, model: type[M], where: object) -> M:
    """Return what was parsed as a model has it. Raises UnreadableError if it does not fit."""
    try:
        return msgspec.convert(value, model)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise UnreadableError(f"{where}: {one_line(error)}") from None


def parsed(path: Path) -> Any:
    """Return a file's JSON. Raises UnreadableError if it is none."""
    try:
        return json.loads(content(path))  # msgspec knows no NaN
    except UnreadableError:
        raise
    except (RecursionError, ValueError) as error:
        raise UnreadableError(f"{path}: is not JSON: {one_line(error)}") from None


def listed(folder: Path, pattern: str) -> list[Path]:
    """Return the files of results of such names, in their order."""
    return sorted(folder.glob(pattern))


def result_paths(folder: Path, commit: str = "") -> list[Path]:
    """Return the paths of asv's files of a machine, or of those of a commit."""
    paths = listed(folder, f"{commit[:8] or '????????'}-*.json")
    return [path for path in paths if models.RESULT.fullmatch(path.name)]


def files(folder: Path, commit: str = "") -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield asv's files of a machine, or of those of a commit: the path, the JSON, and what the model has of it."""
    return read_files(result_paths(folder, commit))


def read_files(paths: Iterable[Path]) -> Iterator[tuple[Path, Any, models.Document]]:
    """Yield each of some files of asv's as `files` does."""
    for path in paths:
        try:
            content = parsed(path)
            yield path, content, convert(content, models.Document, path)
        except UnreadableError as error:
            leave_out(str(error))


def documents(folder: Path, commit: str = "") -> Iterator[models.Document]:
    """Yield the results of a machine's folder, one for each commit and environment; those of a commit if it is named.

    Of a benchmark that several files of them have, the numbers that were measured last count.
    """
    return merge_files(folder, files(folder, commit))


def merge_files(folder: Path, every: Iterable[tuple[Path, Any, models.Document]]) -> Iterator[models.Document]:
    """Yield the results of some files of a folder as `documents` does."""
    for _, some in itertools.groupby(every, lambda each: each[0].name[:8]):
        found: dict[tuple[str, str], list[tuple[Any, models.Document]]] = {}
        for _, one, document in some:
            found.setdefault((document.commit_hash, document.env_name), []).append((one, document))
        for several in found.values():
            if len(several) == 1:
                yield several[0][1]
            else:
                yield convert(rows.together(*(one for one, _ in several)), models.Document, folder)


def lines(path: Path, model: type[M], word: str = "") -> Iterator[tuple[bytes, M]]:
    """Yield the lines of a record that hold a word, as they are and as the model has them; none without a file.

    Lines without the word are not decoded. One that is torn is said all the same: it may have lost the word.
    """
    wanted = word.encode()
    if not path.exists():
        return
    for number, line in enumerate(content(path).splitlines(), start=1):
        is_whole = line.startswith(b"{") and line.rstrip().endswith(b"}")
        try:
            if line.strip() and (wanted in line or not is_whole):
                yield line, msgspec.json.decode(line, type=model)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            leave_out(f"{path}, line {number}: {one_line(error)}")


@functools.cache
def leave_out(why: str) -> None:
    """Say once what is left out, and why."""
    print(f"left out: {why}", file=sys.stderr)
