"""``ptxcount compare``: the counts of two commits side by side, as a comment for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import LaunchError
from . import formats
from .markdown import Part, code, comment, escape
from .pins import Change, changes, pins

_HEAD = ("| launch | line | source | count | base | head |  |", "| :-- | :-- | :-- | :-- | --: | --: | --: |")


@dataclass(frozen=True)
class Result:
    """What ``check --format json`` wrote: each launch's lines and name by its key, and why others have none."""

    lines: dict[str, list[dict[str, Any]]]
    names: dict[str, str]
    uncounted: list[str]


def read(file: Path) -> Result:
    """The result in a file; `LaunchError` if it is something else."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        if held["version"] != formats.VERSION:
            raise LaunchError(f"{file}: version {held['version']} of the format; {formats.VERSION} is known")
        found = {each["key"]: each["lines"] for each in held["launches"]}
        for lines in found.values():
            pins(lines)
        names = {each["key"]: each["name"] for each in held["launches"]}
        said = [each for each in held["findings"] if each["code"] in ("PC006", "PC009") and each["level"] == "error"]
        uncounted = [f"{each['launch'] or each['file']}: {each['message']}" for each in said]
    except (ValueError, KeyError, TypeError) as error:
        text = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise LaunchError(f"{file}: {text}; a file that ptxcount check --format json wrote is needed") from None
    return Result(found, names, uncounted)


def markdown(base: Path, head: Path, link: str = "") -> str:
    """A table of what changed, by kernel and source line; ``link`` is where head's files are shown."""
    return comment("ptxcount", _report(read(base), read(head), link))


def _report(base: Result, head: Result, link: str) -> Iterator[Part]:
    before, now = base.lines, head.lines
    found = [(key, each) for key in now if key in before for each in changes(now[key], pins(before[key])[0])]
    found.sort(key=lambda row: row[1].before / max(row[1].now, 1))  # what rose most comes first
    rose = sum(each.now > each.before for _, each in found)
    lists = {"Not counted": head.uncounted, "New": sorted(head.names[key] for key in now.keys() - before.keys())}
    if not head.uncounted:  # else one that is missing may be one that failed
        lists["Gone"] = sorted(base.names[key] for key in before.keys() - now.keys())
    verdict = [f"{rose} rose, {len(found) - rose} fell"] * bool(found)
    verdict += [f"{len(texts)} {title.lower()}" for title, texts in lists.items() if texts]
    yield Part([f"### Memory transactions: {', '.join(verdict) or 'same'}"])
    alike = (now.keys() & before.keys()) - {key for key, _ in found}
    yield Part([f"{len(alike)} of {len(now) + len(head.uncounted)} launches count the same."])
    for title, texts in lists.items():
        if texts:
            yield Part([f"**{title}:**", ""], [f"- {code(text)}" for text in texts], "- and {} more")
    if found:
        texts_of = {(key, row["file"], row["line"]): row["text"] for key in now for row in now[key]}
        rows = [_row(head.names[key], each, texts_of.get((key, each.file, each.line), ""), link) for key, each in found]
        yield Part(_HEAD, rows, "\n**{} more rows are left out**")


def _row(name: str, each: Change, text: str, link: str) -> str:
    place = escape(f"{each.file}:{each.line}")
    address = quote(f"{link}/{each.file}#L{each.line}", safe="/:#")
    source = "lines that changed" if each.places else code(text.strip())
    now = f"**{each.now}**" if each.now > each.before else str(each.now)
    change = f"{each.now / each.before - 1:+.0%}" if each.before else "new"
    cells = code(name), f"[{place}]({address})" if link else place, source, each.name, str(each.before), now, change
    return f"| {' | '.join(cells)} |"
