"""Makes one of two files of the same name, stored and new: what both say, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernelwatch.store import rows, samples
from kernelwatch.store.accept import refusal
from kernelwatch.store.accept.models import Document
from kernelwatch.store.accept.refusal import convert, require

#: So many benchmarks are named whose numbers differ.
_NAMED = 3


def lines(stored: Path, more: Iterable[bytes]) -> bytes:
    """Return the lines of a stored record, and those behind them that it lacks."""
    before = stored.read_bytes().splitlines() if stored.exists() else []
    known = set(before)
    return b"".join(line + b"\n" for line in (*before, *(line for line in more if line not in known)))


def results(document: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit's results with the configurations of both files; those that both have are the first one's."""
    found = dict(other["results"])
    for name, cells in document["results"].items():
        found[name] = cells
        if name in other["results"]:
            own = rows.read(document, name)
            both = rows.united(own, rows.read(other, name))
            found[name] = cells if both is own else rows.written(both)
    return {**document, "results": found, "durations": {**other["durations"], **document["durations"]}}


def differing(document: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the benchmarks of which two files of a commit have other numbers."""
    both = [name for name in document["results"] if name in other["results"]]
    return [name for name in both if not rows.have_same_numbers(rows.read(document, name), rows.read(other, name))]


def taken(came: Path, stored: Path, where: str, *, replace: bool) -> bytes | None:
    """Return a commit's stored results with those that came; None if that is what is stored.

    Parameters
    ----------
    came, stored : Path
        Two files of asv's, the first one checked; there may be no second one.
    where : str
        What messages call it.
    replace : bool
        Whether what came takes the place of stored numbers that differ.

    Raises
    ------
    RefusedError
        Numbers differ that are not to be replaced, or the stored file is not as asv writes it.
    """
    if not stored.exists():
        return came.read_bytes()
    convert(refusal.read(stored), Document, stored)
    ours, theirs = (samples.read(path) for path in (came, stored))
    names = differing(ours, theirs)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    require(
        replace or not names, where,
        f"has other numbers than {stored.parents[1].name}/ for {', '.join(names[:_NAMED])}{more}; all stay as they "
        "are; --replace puts new numbers in the place of stored ones",
    )  # fmt: skip
    both = results(ours, theirs) if replace else results(theirs, ours)
    if both == (ours if replace else theirs):  # rows are the same objects, NaN or not
        return came.read_bytes() if replace else None
    return samples.written(both)


def content(stored: Path, local: Path) -> bytes | None:
    """Return what both files hold, where the local one counts; None if it holds all that is to be read."""
    if local.suffix == ".jsonl":
        return lines(stored, local.read_bytes().splitlines())
    try:
        ours, theirs = (samples.read(path) for path in (local, stored))
        both = results(ours, theirs)
        is_more = both["results"] != ours["results"]  # a row that nothing was added to is the same object, NaN or not
        return json.dumps(both).encode() if is_more else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no results, or torn: the reader says so
        return None
