"""What is stored, typed: a file, or a line of a record, that does not fit its model is named and left out."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kernelwatch.command import one_line
from kernelwatch.store import models, samples

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


def document(path: Path) -> models.Document:
    """Return a file of asv's results. Raises UnreadableError if it is none."""
    try:
        found = json.loads(content(path))  # msgspec knows no NaN
        found = samples.unpack(found) if isinstance(found, dict) else found
    except UnreadableError:
        raise
    except (RecursionError, ValueError) as error:
        raise UnreadableError(f"{path}: is not JSON: {one_line(error)}") from None
    return convert(found, models.Document, path)


def documents(folder: Path) -> Iterator[models.Document]:
    """Yield the results of a machine's folder."""
    for path in sorted(path for path in folder.glob("*.json") if models.RESULT.fullmatch(path.name)):
        try:
            yield document(path)
        except UnreadableError as error:
            leave_out(str(error))


def lines(path: Path, model: type[M]) -> Iterator[tuple[bytes, M]]:
    """Yield the lines of a record, as they are and as the model has them; none where there is no file."""
    if not path.exists():
        return
    for number, line in enumerate(content(path).splitlines(), start=1):
        try:
            if line.strip():
                yield line, msgspec.json.decode(line, type=model)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            leave_out(f"{path}, line {number}: {one_line(error)}")


@functools.cache
def leave_out(why: str) -> None:
    """Say once what is left out, and why."""
    print(f"left out: {why}", file=sys.stderr)
