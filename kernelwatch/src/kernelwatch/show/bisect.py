"""The outcome of a search for the commit that moved a number, as text and as JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from kernelwatch.config import settings
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show import as_json, report, terminal
from kernelwatch.show.text import plain, quantity, word
from kernelwatch.store import git
from kernelwatch.workflow.bisect.search import Search

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 6


def render_json(found: Search) -> str:
    """Return all of it as JSON; a ratio that is infinite is null. The review is as `compare --format json` has it."""
    review = found.review and json.loads(as_json.render(found.review))
    outcome = msgspec.to_builtins(replace(found, review=None))
    change = found.change and as_json.describe_row(found.change)
    document = {"format": FORMAT, "exit_code": found.exit_code, **outcome, "change": change, "review": review}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def render_text(found: Search, root: Path) -> str:
    """Return the outcome first, then what it rests on, and last the review and the source lines."""
    lines = (line for told in _lines(found, root) for line in terminal.wrapped(told, indent=6) or [""])
    return "".join(f"{line}\n" for line in lines)


def _lines(found: Search, root: Path) -> Iterator[str]:
    def commit(commit: str, *judged: str) -> str:
        said = plain(git.text(root, "show", "--no-patch", "--format=%s", commit))
        return " ".join([commit[:8], *judged, said])

    if found.culprit:
        yield f"FOUND  {found.culprit}"
        form = "--format=author   %an <%ae>%ndate     %aI%nsubject  %s"
        words = ("--stat=90,60,12", "--diff-merges=first-parent", form, found.culprit)
        said = git.text(root, "-c", "core.quotePath=false", "show", *words)
        yield from (f"  {plain(line)}".rstrip() for line in said.splitlines())
    elif found.suspects:
        yield f"UNDECIDABLE  {found.reason}"
        yield from (f"  {commit(each)}" for each in found.suspects)
    else:
        yield f"NO DIFFERENCE  {found.good[:8]} and {found.bad[:8]}: {found.reason}"
    yield ""
    if found.change is not None:
        yield plain(found.change.name)
        yield f"  {_change(found.change)} from {found.good[:8]} to {found.bad[:8]}"
        if found.matched > 1:
            yield f"{found.matched} configurations have the words {plain(found.metric)!r}; this one changed most."
    touch = "commit touches" if len(found.commits) == 1 else "commits touch"
    yield f"{len(found.commits)} {touch} {settings.package_name() or 'the project'}; {len(found.log)} looked at"
    yield from (textwrap.shorten(commit(*each), terminal.COLUMNS - 2) for each in found.log)
    if found.review is not None:
        yield from ("", *report.render(found.review).splitlines())
    if found.counted:
        none = "" if found.lines else ": none"
        yield from ("", f"Source lines that access memory otherwise, of {plain(found.counted)}{none}")
        yield from map(plain, found.lines)
    yield from (f"Note: {plain(note)}" for note in found.notes)


def _change(row: Row) -> str:
    unit = "" if row.unit == "seconds" else f" {row.unit}"
    values = f"{quantity(row.base, row.unit)} -> {quantity(row.head, row.unit)}{unit}"
    share = f" ({percent(row.judgement.ratio)})" if math.isfinite(row.judgement.ratio) and row.base > 0 else ""
    return f"{word(row.judgement.verdict, row.kind)}: {values}{share}"
