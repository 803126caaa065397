"""A search as text, at most as wide as a terminal, and as JSON for programs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

import msgspec

from kernelwatch import settings
from kernelwatch.review.bisect.culprit import Culprit
from kernelwatch.review.bisect.search import Search, told
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show.terminal import COLUMNS
from kernelwatch.show.text import plain, quantity, word

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 4


def as_json(search: Search) -> str:
    """Return all of it; a ratio that is infinite is null."""
    document = {"format": FORMAT, "exit_code": search.exit_code, **msgspec.to_builtins(search)}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def text(search: Search) -> str:
    """Return the outcome first, then what it rests on."""
    return "\n".join(line for part in _lines(search) for line in _wrapped(part)) + "\n"


def _lines(search: Search) -> Iterator[str]:
    if search.culprit is not None:
        yield from _culprit(search.culprit)
    elif search.change is not None:
        yield f"UNDECIDABLE  {search.reason}"
        yield from (f"  {each[:8]} {plain(search.subjects[each])}" for each in search.suspects)
    else:
        yield f"NO DIFFERENCE  {search.good[:8]} and {search.bad[:8]}: {search.reason}"
    yield ""
    if search.change is not None:
        yield plain(search.change.name)
        yield f"  {_change(search.change)} from {search.good[:8]} to {search.bad[:8]}"
        if search.matched > 1:
            yield f"{search.matched} configurations have the words {plain(search.metric)!r}; this one changed most."
    measured = settings.package() or "the project"
    yield f"{search.commits} commits touch {measured}; {len(search.steps)} looked at"
    yield from (f"  {told(step, search)}" for step in search.steps)


def _change(row: Row) -> str:
    unit = "" if row.unit == "seconds" else f" {row.unit}"
    values = f"{quantity(row.base, row.unit)} -> {quantity(row.head, row.unit)}{unit}"
    share = f" ({percent(row.judgement.ratio)})" if math.isfinite(row.judgement.ratio) and row.base > 0 else ""
    return f"{word(row.judgement.verdict, row.kind)}: {values}{share}"


def _culprit(found: Culprit) -> Iterator[str]:
    yield f"FOUND  {found.commit}"
    yield from (f"  {plain(line)}" for line in found.said.splitlines())
    yield f"  {_change(found.change)}"
    yield ""
    if found.counted:
        moved = "" if found.lines else ": no line's cost moved"
        yield f"Source lines whose counted cost moved, of {plain(found.counted)}{moved}"
        for each in found.lines:
            mark = "+" if each.is_after else "-"
            yield f"{mark}{each.number:>5}  {plain(each.text)}"
            yield from (f"{mark}       ^ {cost}" for cost in each.costs)
    yield from (f"Note: {plain(note)}" for note in found.notes)


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]
