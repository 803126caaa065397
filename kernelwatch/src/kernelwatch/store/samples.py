"""Reads packed samples: files of 2026-11-24 to 2026-11-26 hold them in one text, under a key that asv does not read."""

from __future__ import annotations

import base64
import functools
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.store import rows

#: The key of the text: JSON, by zlib, in letters. benchmark -> a list a configuration: an exponent of ten, the smallest
#: number in its units, and by how many each is larger: samples, then STATISTICS. Null where there are no samples.
KEY = "packed_samples"

#: Columns that are packed with the samples.
STATISTICS = ("stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75")
_PACKED = (*STATISTICS, "samples")

#: Bytes of the JSON at most: a small text may hold a large one.
LARGEST = 64 << 20


def unpack(document: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content as asv writes it, the samples in their rows.

    Raises
    ------
    ValueError
        The text is not as it was made.
    """
    if KEY not in document:
        return document
    try:
        found = dict(document["results"])
        reader = zlib.decompressobj()
        packed = json.loads(reader.decompress(base64.b85decode(document[KEY]), LARGEST))
        if not reader.eof:
            raise ValueError("cut short")
        for name, lists in packed.items():
            row = rows.read(document, name)
            if len(lists) != len(row["result"]) or any(row[column] for column in _PACKED):
                raise ValueError(name)
            numbers = [_unpacked(each) if each else None for each in lists]
            for back, column in enumerate(reversed(STATISTICS), start=1):
                row[column] = [each and each[-back] for each in numbers]
            row["samples"] = [each and each[: -len(STATISTICS)] for each in numbers]
            found[name] = rows.written(row)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{KEY} is not as it is written: {type(error).__name__}") from None
    return {**{key: value for key, value in document.items() if key != KEY}, "results": found}


def read(path: Path) -> Any:
    """Return a file of results as asv writes it. Raises as `json.loads` and `unpack`."""
    return unpack(json.loads(path.read_bytes()))


def install() -> None:
    """Let asv read such files."""
    from asv import util  # noqa: PLC0415 -- asv's processes import this library, and must not import asv

    util.load_json = unpacking(util.load_json)


def unpacking(load: Any) -> Any:
    """Return asv's reader of JSON that reads such files too; itself if it does."""
    from asv.util import UserError  # noqa: PLC0415 -- as above

    if hasattr(load, "unpacks"):
        return load

    @functools.wraps(load)
    def wrapped(path: str, *args: Any, **kwargs: Any) -> Any:
        found = load(path, *args, **kwargs)
        try:
            return unpack(found) if isinstance(found, dict) else found
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    wrapped.unpacks = True  # type: ignore[attr-defined]
    return wrapped


def _unpacked(packed: Sequence[int]) -> list[float]:
    exponent, least, *more = packed
    if len(more) <= len(STATISTICS) or any(type(each) is not int for each in packed):
        raise ValueError("no samples, or no numbers")
    return [float(f"{least + each}e{exponent}") for each in more]
