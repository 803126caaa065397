"""Reading what anybody may have written: what is not as a model has it is refused, with its place and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelwatch.store import samples

M = TypeVar("M")


class RefusedError(ValueError):
    """Something is not as it should be; the message begins with where."""


def require(holds: object, where: object, reason: str) -> None:
    """Raise RefusedError unless something holds."""
    if not holds:
        raise RefusedError(f"{where}: {reason}")


def read(path: Path) -> Any:
    """The JSON document of a file, as `parse`, with its samples in their places."""
    require(path.is_file(), path, "is missing")
    found = parse(path.read_bytes(), path)
    try:
        return samples.unpack(found) if isinstance(found, dict) else found
    except ValueError as error:
        raise RefusedError(f"{path}: {error}") from None


def parse(text: bytes, where: object) -> Any:
    """A JSON document; its NaN and Infinity are bytes, which no number of a model is."""
    try:
        return json.loads(text.decode(), parse_constant=str.encode)
    except (RecursionError, ValueError) as error:
        raise RefusedError(f"{where}: is not JSON: {error}") from None


def convert(value: object, model: type[M], where: object) -> M:
    """What was parsed, as a model of `kernelwatch.store.models` has it."""
    try:
        return msgspec.convert(value, model, builtin_types=[bytes])
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise RefusedError(f"{where}: {error}") from None
