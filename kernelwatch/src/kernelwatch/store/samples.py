"""How samples are stored: rounded to what the GPU's clock resolves, and packed.

asv writes each with 17 digits, which took four fifths of a file of results. CUDA's events and %globaltimer tick in 20
to 32 ns: five digits of a replay of 1 ms mean something, and seven of the longest, of 0.5 s. Eight are kept. A file of
results holds them all in one text, with the statistics of the same numbers, under a key that asv does not read: without
this, it finds none there. Files of before 2026-11-24 have them in their rows, and are read as they are.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asv import util

from kernelwatch.store import rows

#: The key of the text: JSON, by zlib, in letters. benchmark -> a list a configuration: an exponent of ten, the smallest
#: number in its units, and by how many each is larger: samples, then STATISTICS. Null where there are no samples.
KEY = "packed_samples"

#: Columns that are packed with the samples.
STATISTICS = ("stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75")
_PACKED = (*STATISTICS, "samples")

#: Digits that are kept of the smallest number of a configuration; of a median, which may lie between two, one more.
DIGITS = 8

#: Bytes of the JSON at most: a small text may hold a large one.
LARGEST = 64 << 20


def pack(document: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content with its samples packed; itself if there are none."""
    packed: dict[str, list[list[int] | None]] = {}
    found = dict(document["results"])
    for name in found if set(_PACKED) <= {*document["result_columns"]} else ():
        row = rows.read(document, name)
        if not row["samples"] or not all(isinstance(row[column], list) for column in ("result", *STATISTICS)):
            continue
        together = list(zip(row["samples"], *(row[column] for column in STATISTICS), strict=True))
        if not all(_is_plain([*each, *more]) if each else not any(more) for each, *more in together):
            continue
        packed[name] = [_packed([*each, *more]) if each else None for each, *more in together]
        kept = [each and _unpacked(each)[: -len(STATISTICS)] for each in packed[name]]
        values = row["result"] if kept == row["samples"] else [_rounded(each, DIGITS + 1) for each in row["result"]]
        found[name] = rows.written({**row, "result": values, **dict.fromkeys(_PACKED)})
    if not packed:
        return document
    text = zlib.compress(json.dumps(packed, separators=(",", ":")).encode(), 9)
    return {**document, "results": found, KEY: base64.b85encode(text).decode()}


def unpack(document: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content as asv writes it, the samples in their rows.

    Raises
    ------
    ValueError
        The text is not as `pack` makes it.
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


def written(document: dict[str, Any]) -> bytes:
    """Return the bytes of a file of results."""
    return json.dumps(pack(document), separators=(",", ":")).encode()


def install() -> None:
    """Let asv read such files."""
    util.load_json = unpacking(util.load_json)


def unpacking(load: Any) -> Any:
    """Return asv's reader of JSON that reads such files too; itself if it does."""
    if hasattr(load, "unpacks"):
        return load

    @functools.wraps(load)
    def wrapped(path: str, *args: Any, **kwargs: Any) -> Any:
        found = load(path, *args, **kwargs)
        try:
            return unpack(found) if isinstance(found, dict) else found
        except ValueError as error:
            raise util.UserError(f"{path}: {error}") from None

    wrapped.unpacks = True  # type: ignore[attr-defined]
    return wrapped


def _is_plain(samples: Sequence[object]) -> bool:
    return all(type(each) is float and math.isfinite(each) and each > 0 for each in samples)


def _packed(samples: Sequence[float]) -> list[int]:
    exponent = int(f"{min(samples):.{DIGITS - 1}e}".partition("e")[2]) - DIGITS + 1
    units = [round(each * 10.0**-exponent) for each in samples]
    while not any(each % 10 for each in units):
        units, exponent = [each // 10 for each in units], exponent + 1
    least = min(units)
    return [exponent, least, *(each - least for each in units)]


def _unpacked(packed: Sequence[int]) -> list[float]:
    exponent, least, *more = packed
    if len(more) <= len(STATISTICS) or any(type(each) is not int for each in packed):
        raise ValueError("no samples, or no numbers")
    return [float(f"{least + each}e{exponent}") for each in more]


def _rounded(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if type(value) is float and math.isfinite(value) else value
