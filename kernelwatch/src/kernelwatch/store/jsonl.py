"""JSON lines beside asv's results. asv reads every file ending in `.json` there, and leaves these alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ptxcount import whole


def lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a file, each with a name of its place for messages; none where there is no file.

    Raises
    ------
    ValueError
        A line is no JSON; the message names it.
    """
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            try:
                yield place, json.loads(line)
            except ValueError:
                raise ValueError(f"{place}: is not JSON: {line[:200]!r}") from None


def read(path: Path) -> list[Any]:
    """Return the entries of a file; none where there is no file. Raises as `lines`."""
    return [entry for _, entry in lines(path)]


def append(path: Path, *entries: Mapping[str, Any]) -> None:
    """Add the entries that a file lacks, all of them or none; it is made if there is none."""
    before = path.read_bytes().splitlines() if path.exists() else []
    if more := [line for line in _text(entries).splitlines() if line not in before]:
        whole.write(path, b"".join(line + b"\n" for line in (*before, *more)))


def replace(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a file anew, completely or not at all."""
    whole.write(path, _text(entries))


def _text(entries: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()
