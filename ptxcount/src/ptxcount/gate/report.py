"""``ptxcount compare``: the counts of two commits side by side, as a comment for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from . import formats
from .blocks import Block, Heading, Items, Link, Name, Paragraph, Said, Strong, Table
from .markdown import comment
from .pins import Change, changes, pins

_HEADERS = ["launch", "line", "source", "count", "base", "head", ""]
_ALIGN = ["left", "left", "left", "left", "right", "right", "right"]


def read(file: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of each launch in what ``check --format json`` wrote; `LaunchError` if it is something else."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        if held["version"] != formats.VERSION:
            raise LaunchError(f"{file}: version {held['version']} of the format; {formats.VERSION} is known")
        found = {each["key"]: each["lines"] for each in held["launches"]}
        for lines in found.values():
            pins(lines)
    except (ValueError, KeyError, TypeError) as error:
        raise LaunchError(f"{file}: not from ptxcount check --format json: {error!r}") from None
    return found


def markdown(base: Path, head: Path, link: str = "") -> str:
    """A table of what changed, by kernel and source line; ``link`` is where head's files are shown."""
    return comment("ptxcount", _report(read(base), read(head), link))


def _report(before: dict[str, Any], now: dict[str, Any], link: str) -> Iterator[Block]:
    found = [(key, each) for key in now if key in before for each in changes(now[key], pins(before[key])[0])]
    found.sort(key=lambda row: row[1].before / max(row[1].now, 1))  # what rose most comes first
    rose = sum(each.now > each.before for _, each in found)
    yield Heading(f"Memory transactions: {f'{rose} rose, {len(found) - rose} fell' if found else 'same'}")
    alike = (now.keys() & before.keys()) - {key for key, _ in found}
    yield Paragraph([f"{len(alike)} of {len(now)} launches count the same."])
    for title, keys in (("New", now.keys() - before.keys()), ("Gone", before.keys() - now.keys())):
        if keys:
            yield Items(title, [[Name(key)] for key in sorted(keys)])
    if found:
        texts = {(key, row["file"], row["line"]): row["text"] for key in now for row in now[key]}
        rows = [_row(key, each, texts.get((key, each.file, each.line), ""), link) for key, each in found]
        yield Table(_HEADERS, _ALIGN, rows, "**{} more rows are left out**")


def _row(key: str, each: Change, text: str, link: str) -> list[str]:
    place = f"{each.file}:{each.line}"
    return [
        Name(key),
        Link(place, f"{link}/{each.file}#L{each.line}") if link else Said(place),
        "lines that changed" if each.several else Name(text.strip()),
        each.name,
        str(each.before),
        Strong(each.now) if each.now > each.before else str(each.now),
        f"{each.now / each.before - 1:+.0%}" if each.before else "new",
    ]
