"""Pinned counts: a lock file by launch and by the text of a source line, so that lines may move."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import whole
from ..errors import LaunchError
from .counting import Counted
from .findings import Finding
from .launches import FILE as LAUNCHES

FILE = "ptxcount.lock"
#: What is pinned of an access, by its space.
PINNED = {"global": ("requests", "sectors"), "shared": ("requests", "wavefronts")}
#: By launch, then by line, then by count.
Pins = dict[str, dict[str, dict[str, int]]]


class Change(NamedTuple):
    """A count that is not what it was, at a line, or at several lines together whose text changed."""

    file: str
    line: int
    name: str
    before: int
    now: int
    several: bool


def pins(lines: Iterable[dict[str, Any]]) -> tuple[dict[str, dict[str, int]], dict[str, tuple[str, int]]]:
    """The counts of each source line, by file and text, and where these lines are now."""
    found: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[str, int]] = {}
    seen: Counter[str] = Counter()
    for row in lines:
        text = f"{row['file']}: {' '.join(row['text'].split())}"
        seen[text] += 1
        key = text if seen[text] == 1 else f"{text} ({seen[text]})"
        numbers: Counter[str] = Counter()
        for access in row["accesses"]:
            for name in PINNED.get(access["space"], ()):
                numbers[f"{access['space']} {access['kind']} {name}"] += access[name]
        if numbers:
            found[key], places[key] = dict(sorted(numbers.items())), (row["file"], row["line"] or 1)
    return found, places


def write(folder: Path, counted: Iterable[Counted]) -> None:
    """Write the lock file: JSON with a line for each source line."""
    parts = []
    for one in counted:
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in pins(one.lines)[0].items())
        parts.append(f" {json.dumps(one.key)}: {{\n{rows}\n }}")
    whole.write(folder / FILE, "{\n" + ",\n".join(parts) + "\n}\n")


def read(folder: Path) -> Pins | None:
    """The lock file; None if there is none. Raises `LaunchError` if it is none that `write` wrote."""
    try:
        held: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
        numbers = [each for lines in held.values() for line in lines.values() for each in line.values()]
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError) as error:
        raise LaunchError(f"{folder / FILE}: {error}; ptxcount pin writes it anew") from None
    if not all(type(each) is int for each in numbers):
        raise LaunchError(f"{folder / FILE}: a count that is no number; ptxcount pin writes it anew")
    return dict(held)


def compare(one: Counted, held: Pins) -> Iterator[Finding]:
    """What rose, and what fell."""
    if one.key not in held:
        yield Finding(one.file, 1, "PC005", f"no counts are pinned: ptxcount pin; {one.key}")
        return
    for file, line, name, before, now, several in changes(one.lines, held[one.key]):
        what = f"{'lines that changed, ' * several}{one.key}"
        if now > before:
            yield Finding(file, line, "PC003", f"{name} rose from {before} to {now}; {what}")
        else:
            text = f"{name} fell from {before} to {now}: ptxcount check --update pins it; {what}"
            yield Finding(file, line, "PC004", text, "note")


def gone(counted: Iterable[Counted], held: Pins) -> Iterator[Finding]:
    """The launches that are pinned and no longer written down: who takes one away says so in the lock file, too."""
    for key in sorted(held.keys() - {one.key for one in counted}):
        yield Finding(FILE, 1, "PC008", f"pinned, and in {LAUNCHES} no more: ptxcount pin; {key}")


def changes(lines: Iterable[dict[str, Any]], before: dict[str, dict[str, int]]) -> Iterator[Change]:
    """What changed. Lines whose text changed are compared together, with those that went."""
    now, places = pins(lines)
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now]
    for key in now:
        if key in before:
            yield from _changes(*places[key], now[key], before[key], several=False)
    if new or gone:
        file, line = places[new[0]] if new else next(iter(places.values()), (gone[0].partition(": ")[0], 1))
        yield from _changes(file, line, _sum(now, new), _sum(before, gone), several=True)


def _sum(table: dict[str, dict[str, int]], keys: list[str]) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for key in keys:
        for name, number in table[key].items():
            sums[name] += number
    return sums


def _changes(file: str, line: int, now: dict[str, int], before: dict[str, int], *, several: bool) -> Iterator[Change]:
    for name in sorted({*now, *before}):
        if now.get(name, 0) != before.get(name, 0):
            yield Change(file, line, name, before.get(name, 0), now.get(name, 0), several)
