"""Pinned counts: a lock file by launch and by the text of a source line, so that lines may move."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from .launches import Counted

FILE = "ptxcount.lock"
#: What is pinned of an access, by its space.
PINNED = {"global": ("requests", "sectors"), "shared": ("requests", "wavefronts")}
Pins = dict[str, dict[str, dict[str, int]]]


@dataclass(frozen=True)
class Finding:
    """One line of what `check` says: where, a code, in words, and whether it fails."""

    file: str
    line: int
    code: str
    message: str
    level: str = "error"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.message}"


def pins(one: Counted) -> tuple[dict[str, dict[str, int]], dict[str, tuple[str, int]]]:
    """The counts of each source line, by file and text, and where these lines are now."""
    found: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[str, int]] = {}
    seen: Counter[str] = Counter()
    for row in one.lines:
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


def write(folder: Path, counted: list[Counted]) -> None:
    """Write the lock file: JSON with a line for each source line."""
    parts = []
    for one in counted:
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in pins(one)[0].items())
        parts.append(f" {json.dumps(one.key)}: {{\n{rows}\n }}")
    (folder / FILE).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def read(folder: Path) -> Pins | None:
    """The lock file; None if there is none. Raises `LaunchError` if it is none that `write` wrote."""
    try:
        held: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LaunchError(f"{folder / FILE}: {error}; ptxcount pin writes it anew") from None
    numbers = (each for lines in held.values() for line in lines.values() for each in line.values())
    if not all(type(each) is int for each in numbers):
        raise LaunchError(f"{folder / FILE}: a count that is no number; ptxcount pin writes it anew")
    return dict(held)


def compare(one: Counted, held: Pins) -> Iterator[Finding]:
    """What rose, and what fell. Lines whose text changed are compared together, with those that went."""
    now, places = pins(one)
    if one.key not in held:
        yield Finding(one.launch.file, 1, "PC005", f"no counts are pinned: ptxcount pin; {one.key}")
        return
    before = held[one.key]
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now]
    for key in now:
        if key in before:
            yield from _changes(*places[key], now[key], before[key], one.key)
    if new or gone:
        file, line = places[new[0]] if new else (one.launch.file, 1)
        yield from _changes(file, line, _sum(now, new), _sum(before, gone), f"lines that changed, {one.key}")


def _sum(table: dict[str, dict[str, int]], keys: list[str]) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for key in keys:
        for name, number in table[key].items():
            sums[name] += number
    return sums


def _changes(file: str, line: int, now: dict[str, int], before: dict[str, int], what: str) -> Iterator[Finding]:
    for name in sorted({*now, *before}):
        new, old = now.get(name, 0), before.get(name, 0)
        if new > old:
            yield Finding(file, line, "PC003", f"{name} rose from {old} to {new}; {what}")
        elif new < old:
            text = f"{name} fell from {old} to {new}: ptxcount check --update pins it; {what}"
            yield Finding(file, line, "PC004", text, "note")
