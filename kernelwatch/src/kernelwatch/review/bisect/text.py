"""A search as text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence

from kernelwatch.review.bisect.culprit import Cubin, Culprit, Line
from kernelwatch.review.bisect.judging import Source
from kernelwatch.review.bisect.search import Search, told
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show.terminal import COLUMNS
from kernelwatch.show.text import plain, quantity, word

#: Files and cubins that are listed.
_LISTED = 12


def render(search: Search) -> str:
    """Return the outcome first, then what it rests on."""
    return "\n".join(line for part in _lines(search) for line in _wrapped(part)) + "\n"


def _lines(search: Search) -> Iterator[str]:
    if search.culprit is not None:
        yield from _culprit(search.culprit)
    elif search.row is not None:
        yield f"UNDECIDABLE  {search.reason}"
        yield from (f"  {each.hash[:8]} {plain(each.subject)}" for each in search.suspects)
    else:
        yield f"NO DIFFERENCE  {search.good[:8]} and {search.bad[:8]}: {search.reason}"
    yield ""
    if search.row is not None:
        yield f"{plain(search.row.name)}"
        yield f"  {_change(search.row)} from {search.good[:8]} to {search.bad[:8]}"
    if search.matched > 1:
        yield f"{search.matched} configurations have the words {plain(search.metric)!r}; this one changed most." * bool(
            search.row
        )
    touching = len(search.commits) - 1
    yield f"{search.total} commits, of which {touching} touch gpu_kernels; {_looked_at(search)}; {search.seconds:.0f} s"
    yield from (f"  {told(step, search.row)}" for step in search.steps)


def _looked_at(search: Search) -> str:
    counts = {source: search.count(source) for source in Source}
    parts = ", ".join(f"{count} {source.value}" for source, count in counts.items() if count)
    return f"{len(search.steps)} looked at" + (f": {parts}" if parts else "")


def _change(row: Row) -> str:
    said = word(row.judgement.verdict, row.kind)
    unit = "" if row.unit == "seconds" else f" {row.unit}"
    values = f"{quantity(row.base, row.unit)} -> {quantity(row.head, row.unit)}{unit}"
    return f"{said}: {values}" + (f" ({percent(row.judgement.ratio)})" if row.base > 0 else "")


def _culprit(culprit: Culprit) -> Iterator[str]:
    said = culprit.description
    yield f"FOUND  {said.commit}"
    yield f"  author   {plain(said.author)}"
    yield f"  date     {plain(said.date)}"
    yield f"  subject  {plain(said.subject)}"
    yield f"  {_change(culprit.row)}"
    yield ""
    yield f"Files ({len(said.files)}):"
    yield from _few([f"  {plain(file)}" for file in said.files])
    yield f"Machine code: {_of(culprit)}"
    yield from _few([f"  {each}" for each in _by_kernel(culprit.cubins)])
    if culprit.counted:
        moved = "" if culprit.lines else ": no line's cost moved"
        yield f"Source lines whose counted cost moved, of {plain(culprit.counted)}{moved}"
        yield from _source(culprit.lines)
    yield from (f"Note: {plain(note)}" for note in culprit.notes)


def _of(culprit: Culprit) -> str:
    archs = ", ".join(sorted({each.arch for each in culprit.cubins}))
    return f"{len(culprit.cubins)} of {culprit.compared} cubins changed" + (f" for {archs}" if archs else "")


def _by_kernel(cubins: Sequence[Cubin]) -> list[str]:
    """Return the changed machine code, a line for each kernel, and one that shows the hashes."""
    kernels: dict[str, list[Cubin]] = defaultdict(list)
    for each in cubins:
        kernels[each.name.split()[0]].append(each)
    return [
        f"{plain(kernel)} ({len(found)}), such as {plain(found[0].name.partition(' ')[2])}: "
        f"{_short(found[0].before)} -> {_short(found[0].after)}"
        for kernel, found in kernels.items()
    ]


def _short(sha256: str | None) -> str:
    return sha256[:12] if sha256 else "none"


def _source(lines: Sequence[Line]) -> Iterator[str]:
    """Lines as a diff has them, each with its cost below."""
    last: tuple[bool, int] | None = None
    for each in lines:
        mark = "+" if each.is_after else "-"
        if last != (each.is_after, each.number):
            yield f"{mark}{each.number:>5}  {plain(each.text)}"
        last = each.is_after, each.number
        yield f"{mark}       ^ {each.cost}"


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - _LISTED
    return lines[:_LISTED] + ([f"  and {more} more"] if more > 0 else [])


def _wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]
