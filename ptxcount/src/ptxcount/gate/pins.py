"""Pinned counts: a lock file by launch and by the text of a source line, so that lines may move."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..cli.options import plain
from ..util import atomic_write
from ..util.errors import LaunchError
from ..util.git_environment import environment
from ..util.regular_files import require_regular
from .counting import Counted
from .diagnostics import Diagnostic

FILE = "ptxcount.lock"
_SECTORS, _WAVEFRONTS = ("requests", "sectors"), ("requests", "wavefronts")
#: What is pinned of an access, by its space. The stack frame and spills are ptxas's.
PINNED = {
    "global": _SECTORS, "cluster": _SECTORS, "shared": _WAVEFRONTS, "local": _SECTORS, "texture": _SECTORS,
    "surface": _SECTORS, "bulk": _SECTORS, "constant": ("requests", "addresses"), "stack": ("bytes",),
    "spill": ("bytes",),
}  # fmt: skip
#: Spaces of which only ptxas knows.
MACHINE = {"stack", "spill"}
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

    def __str__(self) -> str:
        verb = "rose" if self.now > self.before else "fell"
        return f"{self.name} {verb} from {self.before} to {self.now}" + " in lines that changed" * bool(self.places)


@dataclass(frozen=True)
class Lock:
    """A lock file: the release of the nvcc that counts were made with, and the counts of each launch."""

    nvcc: str = ""
    launches: dict[str, Lines] = field(default_factory=dict)

    def of(self, one: Counted) -> Lines | None:
        """The counts of a launch; one that had no name when it was pinned is found by its description."""
        return self.launches.get(one.key, self.launches.get(one.description))

    def gone(self, counted: Iterable[Counted]) -> list[str]:
        """The launches that are pinned and no longer written down, in one short line each."""
        there = {key for one in counted for key in (one.key, one.description)}
        return [plain(key, 80) for key in sorted(self.launches.keys() - there)]


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
            # Uniform loads of constant memory cost next to nothing.
            uniform = access["space"] == "constant" and access["addresses"] <= access["requests"]
            for name in () if uniform else PINNED.get(access["space"], ()):
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
    atomic_write.write(folder / FILE, text)


class _Document(msgspec.Struct):
    """The types that a lock file must have."""

    nvcc: str
    launches: dict[str, Lines]


def read(folder: Path) -> Lock | None:
    """Read the lock file; None if there is none. Raises `LockError` for text that `write` did not write."""
    file = folder / FILE
    require_regular(file)
    return _parsed(file.read_bytes(), str(file)) if file.exists() else None


class LockError(LaunchError):
    """A lock file that is not understood."""


def _parsed(text: bytes, name: str) -> Lock:
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (ValueError, RecursionError) as error:
        raise LockError(f"{name}: {error}; run ptxcount pin, which writes it anew") from None
    return Lock(document.nvcc, document.launches)


def since(revision: str) -> Lock:
    """The lock file that a revision has in this folder; an empty one if it has none. Raises `LaunchError`."""
    place = f"./{FILE}"
    if not _git(revision, "ls-tree", "--end-of-options", revision, place):
        return Lock()
    return _parsed(_git(revision, "show", "--end-of-options", f"{revision}:{place}"), f"{revision}:{FILE}")


def _git(revision: str, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], env=environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise LaunchError(f"revision {revision}: git is needed") from None
    if done.returncode:
        raise LaunchError(f"revision {revision}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def compare(one: Counted, lock: Lock) -> Iterator[Diagnostic]:
    """What rose, and what fell."""
    held, name = lock.of(one), one.launch.label
    if held is None:
        yield Diagnostic(*one.declared_at, "PC005", "no counts are pinned: run ptxcount pin", launch=name)
        return
    pinned, known = (_spaces(lines) & MACHINE for lines in (held, pins(one.lines)[0]))
    if pinned > known:
        text = f"the {' and the '.join(sorted(pinned))} are pinned, and there is no ptxas here to hold them"
        yield Diagnostic(one.launch.file, 1, "PC009", text, launch=name)
    for each in changes(one.lines, held):
        if each.now > each.before:
            yield Diagnostic(each.file, each.line, "PC003", str(each), launch=name)
        else:
            yield Diagnostic(each.file, each.line, "PC004", f"{each}: ptxcount pin holds it there", "note", name)


def changes(lines: Iterable[dict[str, Any]], before: Lines) -> Iterator[Change]:
    """What changed of the counts; of ptxas's, if both sides have them.

    Lines whose text changed are taken for each other where they count the same; what is left of them is compared
    together, with the lines that went.
    """
    now, places = pins(lines)
    unknown = MACHINE - (_spaces(now) & _spaces(before))
    now, before = (_without(unknown, each) for each in (now, before))
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now]
    for key in [*new]:
        same = next((each for each in gone if before[each] == now[key]), None)
        if same is not None:
            new.remove(key)
            gone.remove(same)
    for key in filter(before.__contains__, now):
        for name, old, count in _different(before[key], now[key]):
            yield Change(*places[key], name, old, count)
    went, came = (sum((Counter(side[key]) for key in keys), Counter()) for side, keys in ((before, gone), (now, new)))
    for name, old, count in _different(went, came):
        most = max(new, key=lambda key: now[key].get(name, 0), default=None)
        place = places[most] if most is not None else _former_place(name, gone, before, places)
        yield Change(*place, name, old, count, tuple(places[key] for key in new) or (place,))


def _former_place(name: str, gone: list[str], before: Lines, places: Mapping[str, tuple[str, int]]) -> tuple[str, int]:
    """Return a place in the file whose line went, be it a header: the line itself is nowhere any more."""
    file = max(gone, key=lambda key: before[key].get(name, 0)).partition(": ")[0]
    return next((place for place in places.values() if place[0] == file), (file, 1))


def _spaces(lines: Lines) -> set[str]:
    return {name.partition(" ")[0] for line in lines.values() for name in line}


def _without(spaces: set[str], lines: Lines) -> Lines:
    """The counts of other spaces, and the lines that have any."""
    left = {
        key: {name: count for name, count in line.items() if name.partition(" ")[0] not in spaces}
        for key, line in lines.items()
    }
    return {key: line for key, line in left.items() if line}


def _different(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    for name in sorted({*now, *before}):
        if now.get(name, 0) != before.get(name, 0):
            yield name, before.get(name, 0), now.get(name, 0)
