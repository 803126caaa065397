"""``ptxcount compare``: the counts of two commits side by side, as a comment for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import LaunchError
from . import formats
from .pins import Change, changes, pins

#: The first line of a comment: a later one takes its place.
MARKER = "<!-- ptxcount -->"
#: Rows that are shown; a comment of GitHub holds 65,536 characters.
ROWS = 100


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
    before, now = read(base), read(head)
    rows: list[tuple[str, Change, str]] = []
    for key in now:
        if key in before:
            texts = {(row["file"], row["line"]): row["text"] for row in now[key]}
            found = changes(now[key], pins(before[key])[0])
            rows += [(key, each, texts.get((each.file, each.line), "")) for each in found]
    rows.sort(key=lambda row: row[1].before / max(row[1].now, 1))  # what rose most comes first
    return "\n".join([MARKER, *_summary(before, now, rows), *_table(rows, link)]) + "\n"


def _summary(before: dict[str, Any], now: dict[str, Any], rows: list[tuple[str, Change, str]]) -> Iterator[str]:
    rose = sum(each.now > each.before for _, each, _ in rows)
    yield f"### Memory transactions: {rose} rose, {len(rows) - rose} fell" if rows else "### Memory transactions: same"
    changed = {key for key, _, _ in rows}
    yield f"\n{sum(key in before and key not in changed for key in now)} of {len(now)} launches count the same."
    for word, keys in (("New", now.keys() - before.keys()), ("Gone", before.keys() - now.keys())):
        if keys:
            yield f"\n{word}: {', '.join(map(_code, sorted(keys)[:ROWS]))}"


def _table(rows: list[tuple[str, Change, str]], link: str) -> Iterator[str]:
    if rows:
        yield "\n| launch | line | count | base | head | |\n| --- | --- | --- | ---: | ---: | ---: |"
    for key, each, text in rows[:ROWS]:
        place = f"{each.file}:{each.line}"
        at = f"[{_plain(place)}]({link}/{quote(each.file)}#L{each.line})" if link else _plain(place)
        line = f"{at} and other lines that changed" if each.several else f"{at} {_code(text)}"
        share = f"{each.now / each.before - 1:+.0%}" if each.before else "new"
        yield f"| {_code(key)} | {line} | {each.name} | {each.before} | {each.now} | {share} |"
    if len(rows) > ROWS:
        yield f"\nand {len(rows) - ROWS} more"


def _plain(text: str) -> str:
    return "".join(f"&#{ord(each)};" if each in "|<>[]()*_`\\&@#\r\n" else each for each in text)


def _code(text: str) -> str:
    return f"<code>{_plain(text)}</code>" if text else ""
