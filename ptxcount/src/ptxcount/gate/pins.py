"""Pinned counts: a lock file by launch and by the text of a source line, so that lines may move."""

from __future__ import annotations

import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .. import whole
from ..errors import LaunchError
from ..git import environment
from .counting import Counted
from .diagnostics import Diagnostic
from .launches import FILE as LAUNCHES
from .markdown import plain

FILE = "ptxcount.lock"
_SECTORS, _WAVEFRONTS = ("requests", "sectors"), ("requests", "wavefronts")
#: What is pinned of an access, by its space. The stack frame and spills are ptxas's.
PINNED = {
    "global": _SECTORS, "shared": _WAVEFRONTS, "local": _SECTORS, "texture": _SECTORS, "surface": _SECTORS,
    "bulk": _SECTORS, "stack": ("bytes",), "spill": ("bytes",),
}  # fmt: skip
#: Spaces of which only ptxas knows.
MACHINE = ("stack", "spill")
#: The spaces that a lock file had when it did not name its nvcc.
_FIRST = ("global", "shared")
#: By line, then by count.
Lines = dict[str, dict[str, int]]


class Change(NamedTuple):
    """A count that is not what it was, at a line, or at several lines together whose text changed."""

    file: str
    line: int
    name: str
    before: int
    now: int
    places: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Lock:
    """A lock file: the release of the nvcc that counts were made with, and the counts of each launch."""

    nvcc: str = ""
    launches: dict[str, Lines] = field(default_factory=dict)
    spaces: tuple[str, ...] = tuple(PINNED)

    def of(self, one: Counted) -> Lines | None:
        """The counts of a launch; one that had no name when it was pinned is found by its description."""
        return self.launches.get(one.key, self.launches.get(one.description))


def pins(lines: Iterable[dict[str, Any]]) -> tuple[Lines, dict[str, tuple[str, int]]]:
    """The counts of each source line, by file and text, and where these lines are now."""
    found: Lines = {}
    places: dict[str, tuple[str, int]] = {}
    seen: Counter[str] = Counter()
    for row in lines:
        text = f"{row['file']}: {' '.join(row['text'].split())}"
        seen[text] += 1
        key = text if seen[text] == 1 else f"{text} ({seen[text]})"
        numbers: Counter[str] = Counter()
        for access in row["accesses"]:
            for name in PINNED.get(access["space"], ()):
                numbers[f"{access['space']} {access['kind']} {name}"] += access.get(name, 0)
        if numbers:
            found[key], places[key] = dict(sorted(numbers.items())), (row["file"], row["line"] or 1)
    return found, places


def write(folder: Path, counted: Iterable[Counted], nvcc: str) -> None:
    """Write the lock file: JSON with a line for each source line."""
    parts = []
    for one in counted:
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in pins(one.lines)[0].items())
        parts.append(f" {json.dumps(one.key)}: {{\n{rows}\n }}")
    text = f'{{\n"nvcc": {json.dumps(nvcc)},\n"launches": {{\n' + ",\n".join(parts) + "\n}\n}\n"
    whole.write(folder / FILE, text)


def read(folder: Path) -> Lock | None:
    """The lock file; None if there is none. Raises `LaunchError` if it is none that `write` wrote."""
    try:
        return parsed((folder / FILE).read_text(encoding="utf-8"), str(folder / FILE))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LaunchError(f"{folder / FILE}: {error}; ptxcount pin writes it anew") from None


def parsed(text: str, name: str) -> Lock:
    """A lock file's text; before it named its nvcc, it held the launches alone. Raises `LaunchError`."""
    try:
        held: Any = json.loads(text)
        new = isinstance(held.get("launches"), dict) and isinstance(held.get("nvcc"), str)
        lock = Lock(held["nvcc"], held["launches"]) if new else Lock("", held, _FIRST)
        numbers = [each for lines in lock.launches.values() for line in lines.values() for each in line.values()]
    except (ValueError, AttributeError) as error:
        raise LaunchError(f"{name}: {error}; ptxcount pin writes it anew") from None
    if not all(type(each) is int for each in numbers):
        raise LaunchError(f"{name}: a count that is no number; ptxcount pin writes it anew")
    return lock


def since(revision: str) -> Lock:
    """The lock file that a revision has in this folder; an empty one if it has none. Raises `LaunchError`."""
    place = f"./{FILE}"
    if not _git(revision, "ls-tree", "--end-of-options", revision, place):
        return Lock()
    return parsed(_git(revision, "show", "--end-of-options", f"{revision}:{place}"), f"{revision}:{FILE}")


def _git(revision: str, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], env=environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise LaunchError("--changed needs git") from None
    if done.returncode:
        raise LaunchError(f"--changed {revision}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")


def compare(one: Counted, lock: Lock) -> Iterator[Diagnostic]:
    """What rose, and what fell."""
    held = lock.of(one)
    if held is None:
        yield Diagnostic(one.file, 1, "PC005", "no counts are pinned: run ptxcount pin", launch=one.name)
        return
    pinned, known = (_spaces(lines) & {*MACHINE} for lines in (held, pins(one.lines)[0]))
    if pinned > known:
        text = f"the {' and the '.join(sorted(pinned))} are pinned, and there is no ptxas here to hold them"
        yield Diagnostic(one.file, 1, "PC009", text, launch=one.name)
    for each in changes(one.lines, held, lock.spaces):
        what = " in lines that changed" * bool(each.places)
        if each.now > each.before:
            text = f"{each.name} rose from {each.before} to {each.now}{what}"
            yield Diagnostic(each.file, each.line, "PC003", text, launch=one.name)
        else:
            text = f"{each.name} fell from {each.before} to {each.now}{what}: ptxcount check --update pins it"
            yield Diagnostic(each.file, each.line, "PC004", text, "note", one.name)


def gone(counted: Iterable[Counted], lock: Lock) -> Iterator[Diagnostic]:
    """The launches that are pinned and no longer written down: who takes one away says so in the lock file, too."""
    there = {key for one in counted for key in (one.key, one.description)}
    text = f"pinned, and in {LAUNCHES} no more: run ptxcount pin"
    for key in sorted(lock.launches.keys() - there):
        yield Diagnostic(FILE, 1, "PC008", text, launch=plain(key, 80))


def changes(lines: Iterable[dict[str, Any]], before: Lines, spaces: Iterable[str] = PINNED) -> Iterator[Change]:
    """What changed of the counts of these spaces; of ptxas's, if both sides have them.

    Lines whose text changed are taken for each other where they count the same; what is left of them is compared
    together, with the lines that went.
    """
    now, places = pins(lines)
    shown = {*spaces} - ({*MACHINE} - (_spaces(now) & _spaces(before)))
    now, before = (_within(each, shown) for each in (now, before))
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now]
    for key in [*new]:
        same = next((each for each in gone if before[each] == now[key]), None)
        if same is not None:
            new.remove(key)
            gone.remove(same)
    for key in now:
        if key in before:
            for name, old, count in _different(before[key], now[key]):
                yield Change(*places[key], name, old, count)
    for name, old, count in _different(_sum(before, gone), _sum(now, new)):
        most = max(new, key=lambda key: now[key].get(name, 0), default=None)
        there = next(iter(places.values()), (gone[0].partition(": ")[0], 1) if gone else ("", 1))
        place = places[most] if most is not None else there
        yield Change(*place, name, old, count, tuple(places[key] for key in new) or (place,))


def _spaces(lines: Lines) -> set[str]:
    return {name.partition(" ")[0] for line in lines.values() for name in line}


def _within(lines: Lines, spaces: set[str]) -> Lines:
    """The counts of these spaces, and the lines that have any."""
    found = {
        key: {name: count for name, count in line.items() if name.partition(" ")[0] in spaces}
        for key, line in lines.items()
    }
    return {key: line for key, line in found.items() if line}


def _sum(table: Lines, keys: list[str]) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for key in keys:
        for name, number in table[key].items():
            sums[name] += number
    return sums


def _different(before: dict[str, int], now: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    for name in sorted({*now, *before}):
        if now.get(name, 0) != before.get(name, 0):
            yield name, before.get(name, 0), now.get(name, 0)
