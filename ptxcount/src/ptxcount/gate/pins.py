"""Pinned counts: a lock file with counts by launch and by the text of a source line, so that lines may move."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..cli.options import plain
from ..util import atomic_write
from ..util.errors import LaunchError
from ..util.git_environment import make_environment
from ..util.grammar import count_noun
from ..util.regular_files import require_regular
from .count_cache import describe_settings, hash_files
from .counting import LaunchCounts
from .diagnostics import FALL, NOT_COUNTED, NOT_PINNED, RISE, Diagnostic
from .launches import Launch

FILE = "ptxcount.lock"
_SECTORS, _WAVEFRONTS = ("requests", "sectors"), ("requests", "wavefronts")
#: Names of the pinned counts of an access, by state space.
PINNED = {
    "global": _SECTORS, "cluster": _SECTORS, "shared": _WAVEFRONTS, "local": _SECTORS, "texture": _SECTORS,
    "surface": _SECTORS, "bulk": _SECTORS, "constant": ("requests", "addresses"), "stack": ("bytes",),
    "spill": ("bytes",),
}  # fmt: skip
#: Spaces whose counts come from ptxas.
MACHINE = {"stack", "spill"}
#: Maximum number of changed files that a finding names.
_MAX_NAMED = 2
#: Counts by name, such as ``global load sectors``.
Counts = Mapping[str, int]
#: Pinned counts by the file and text of the source line.
Lines = dict[str, dict[str, int]]
#: A file and a line.
Place = tuple[str, int]


class Change(NamedTuple):
    """A changed count, such as ``global load sectors``, of a source line; or of all edited lines in total.

    For a line with unchanged text, ``file`` and ``line`` are its place, and ``places`` is empty. Otherwise ``places``
    lists the edited lines, and ``file`` and ``line`` are those of the edited line with the largest count. If lines were
    only removed, ``places`` has one remaining line of the file instead, or without one, line 1.
    """

    file: str
    line: int
    name: str
    before: int
    now: int
    places: tuple[Place, ...] = ()
    #: Text with the amounts per request before and now, and the ideal.
    cost: str = ""

    def __str__(self) -> str:
        verb = "rose" if self.now > self.before else "fell"
        edited = " in edited lines" if self.places else ""
        return f"{self.name} {verb} from {self.before} to {self.now}{edited}{self.cost}"


class Lock(msgspec.Struct, frozen=True):
    """A lock file: the nvcc release of the counts, and the counts of each launch by its key.

    ``files`` has the hashes of the project's files. ``settings`` has, by a launch's key, the settings that the key
    lacks. Older locks have no ``files`` and no ``settings``.
    """

    nvcc: str
    launches: dict[str, Lines]
    files: dict[str, str] = {}
    settings: dict[str, str] = {}

    def find_launch(self, counts: LaunchCounts) -> Lines | None:
        """Find the pinned counts of a launch by its name, else by its description; None if the launch is not pinned."""
        return self.launches.get(counts.key, self.launches.get(counts.description))

    def list_removed(self, launch_counts: Iterable[LaunchCounts]) -> list[str]:
        """Return the sorted keys of the pinned launches that ``launch_counts`` lacks, each in at most 80 characters."""
        current_keys = {key for counts in launch_counts for key in (counts.key, counts.description)}
        return [plain(key, 80) for key in sorted(self.launches.keys() - current_keys)]

    def list_changes(self, launch: Launch, key: str, files: Sequence[str], nvcc_release: str) -> list[str]:
        """List the inputs that differ from the lock, at most two files by name.

        An example: ["k.cu", "a.h", "3 more files", "nvcc", "the settings of the launch"].
        """
        hashes = hash_files(launch.folder, files)
        changed_files = [plain(file) for file in files if hashes[file] != self.files.get(file)]
        more_count = len(changed_files) - _MAX_NAMED
        changes = changed_files[:_MAX_NAMED] + ([count_noun(more_count, "more file")] if more_count > 0 else [])
        if self.nvcc not in ("", nvcc_release):
            changes.append("nvcc")
        if key in self.launches and self.settings.get(key, "") != describe_settings(launch):
            changes.append("the settings of the launch")
        return changes


#: The lock of a folder without a lock file.
NO_LOCK = Lock("", {})


def pin_lines(lines: Iterable[dict[str, Any]]) -> tuple[Lines, dict[str, Place]]:
    """Return two mappings by the file and text of a source line: the counts to pin, and the line's file and number.

    Lines without counts to pin are left out. The key of the second line with the same text ends in " (2)".
    """
    pinned: Lines = {}
    places: dict[str, Place] = {}
    repetitions: Counter[str] = Counter()
    for row in lines:
        text = f"{row['file']}: {' '.join(row['text'].split())}"
        repetitions[text] += 1
        key = text if repetitions[text] == 1 else f"{text} ({repetitions[text]})"
        numbers: Counter[str] = Counter()
        for access in row["accesses"]:
            # Uniform loads of constant memory are almost free.
            uniform = access["space"] == "constant" and access["addresses"] <= access["requests"]
            for name in () if uniform else PINNED.get(access["space"], ()):
                numbers[f"{access['space']} {access['kind']} {name}"] += access.get(name, 0)
        if numbers:
            pinned[key], places[key] = dict(sorted(numbers.items())), (row["file"], row["line"] or 1)
    return pinned, places


def write_lock(
    folder: Path, launch_counts: Sequence[LaunchCounts], nvcc_release: str, previous: Lock = NO_LOCK
) -> None:
    """Write the lock file. Each source line, file, and setting is on its own line of the JSON.

    Launches of ``previous`` that are not among ``launch_counts`` keep their counts.
    """
    launches: list[str] = []
    replaced = {key for counts in launch_counts for key in (counts.key, counts.description)}
    lines_by_key = {key: lines for key, lines in previous.launches.items() if key not in replaced}
    files, settings = {**previous.files}, {**previous.settings}
    for counts in launch_counts:
        lines_by_key[counts.key] = pin_lines(counts.lines)[0]
        files |= hash_files(counts.launch.folder, counts.files)
        settings[counts.key] = describe_settings(counts.launch)
    for name, lines in lines_by_key.items():
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in lines.items())
        launches.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
    parts = {"launches": launches, "files": _format_texts(files), "settings": _format_texts(settings)}
    objects = [f'"{name}": {{\n' + ",\n".join(rows) + "\n}" for name, rows in parts.items() if rows]
    atomic_write.write(folder / FILE, ",\n".join([f'{{\n"nvcc": {json.dumps(nvcc_release)}', *objects]) + "\n}\n")


def _format_texts(texts: Mapping[str, str]) -> list[str]:
    return [f" {json.dumps(key)}: {json.dumps(text)}" for key, text in sorted(texts.items()) if text]


def read_lock(folder: Path) -> Lock | None:
    """Read the lock file; None if it is missing. Raise `LockError`, or `LaunchError` if it is no regular file."""
    file = folder / FILE
    require_regular(file)
    return _parse_lock(file.read_bytes(), str(file)) if file.exists() else None


class LockError(LaunchError):
    """An invalid lock file."""

    #: The file name in findings.
    file = FILE


def _parse_lock(text: bytes, name: str) -> Lock:
    try:
        return msgspec.json.decode(text, type=Lock)
    except (ValueError, RecursionError) as error:
        raise LockError(f"{name} is no lock file of ptxcount: {error}; run ptxcount pin to replace the file") from None


def read_lock_at(revision: str) -> Lock:
    """Read this folder's lock file as of a git revision; return `NO_LOCK` if there is none.

    Raises `LaunchError` if git cannot read the revision, and `LockError` for an invalid file.
    """
    place = f"./{FILE}"
    if not _run_git(revision, "ls-tree", "--end-of-options", revision, place):
        return NO_LOCK
    return _parse_lock(_run_git(revision, "show", "--end-of-options", f"{revision}:{place}"), f"{revision}:{FILE}")


def _run_git(revision: str, *words: str) -> bytes:
    try:
        process = subprocess.run(["git", *words], env=make_environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise LaunchError(f"revision {revision} cannot be read without git; install git") from None
    if process.returncode:
        problem = process.stderr.decode(errors="replace").strip()
        raise LaunchError(
            f"git cannot read revision {revision}: {problem}; give a branch, tag or commit of this repository"
        )
    return process.stdout


def compare_launch(counts: LaunchCounts, lock: Lock) -> Iterator[Diagnostic]:
    """Yield a finding for each changed count, for a launch without pinned counts, and for missing ptxas counts."""
    pinned_lines, label = lock.find_launch(counts), counts.launch.label
    if pinned_lines is None:
        key = "" if counts.launch.name else "; a launch without a name is identified by its grid, block and arguments"
        yield Diagnostic(*counts.declared_at, NOT_PINNED, f"no counts are pinned; run ptxcount pin{key}", launch=label)
        return
    pinned = _find_spaces(pinned_lines) & MACHINE
    if pinned > _find_spaces(pin_lines(counts.lines)[0]) & MACHINE:
        problem = f"{' and '.join(sorted(pinned))} bytes are pinned, but ptxas failed or is missing"
        text = f"{problem}; set NVCC to an nvcc that comes with ptxas"
        yield Diagnostic(counts.launch.file, 1, NOT_COUNTED, text, launch=label)
    for change in iter_changes(counts.lines, pinned_lines):
        if change.now > change.before:
            yield Diagnostic(change.file, change.line, RISE, str(change), launch=label)
        else:
            text = f"{change}; run ptxcount pin to keep the lower count"
            yield Diagnostic(change.file, change.line, FALL, text, "note", label)


def _describe_cost(
    name: str, before: Counts, now: Counts, lines: Iterable[dict[str, Any]], places: Sequence[Place]
) -> str:
    """Describe a count per request, with the ideal at ``places``: " (4 to 8 per request, ideal 4)"; "" for requests."""
    space, kind, unit = name.split(" ")
    requests = f"{space} {kind} requests"
    if name == requests or not now.get(requests):
        return ""
    with_both = [counts for counts in (before, now) if counts.get(requests) and name in counts]
    ratios = [f"{round(counts[name] / counts[requests], 2):g}" for counts in with_both]
    accesses = [access for row in lines if (row["file"], row["line"] or 1) in places for access in row["accesses"]]
    accesses = [access for access in accesses if (access["space"], access["kind"]) == (space, kind)]
    if unit == "sectors":
        ideal = sum(access.get("ideal_sectors", 0) for access in accesses)
    else:
        ideal = sum(access.get("wavefronts", 0) - access.get("bank_conflicts", 0) for access in accesses)
    text = f", ideal {round(ideal / now[requests], 2):g}" if ideal else ""
    return f" ({' to '.join(dict.fromkeys(ratios))} per request{text})"


def iter_changes(lines: Sequence[dict[str, Any]], pinned_lines: Lines) -> Iterator[Change]:
    """Yield the differences between the counts of a launch (``lines``) and its pinned counts.

    Lines with the same text are compared with each other, and those that `_list_edited` returns in total. Counts from
    ptxas are compared only if both ``lines`` and ``pinned_lines`` have them.
    """
    current_lines, places = pin_lines(lines)
    incomparable = MACHINE - (_find_spaces(current_lines) & _find_spaces(pinned_lines))
    current_lines = _exclude_spaces(incomparable, current_lines)
    pinned_lines = _exclude_spaces(incomparable, pinned_lines)
    new_keys, removed_keys = _list_edited(current_lines, pinned_lines)
    for key, counts in current_lines.items():
        if key in pinned_lines:
            for name, old_count, count in _iter_differences(pinned_lines[key], counts):
                cost = _describe_cost(name, pinned_lines[key], counts, lines, [places[key]])
                yield Change(*places[key], name, old_count, count, cost=cost)
    removed_counts: Counter[str] = sum((Counter(pinned_lines[key]) for key in removed_keys), Counter())
    new_counts: Counter[str] = sum((Counter(current_lines[key]) for key in new_keys), Counter())
    for name, old_count, count in _iter_differences(removed_counts, new_counts):
        if new_keys:
            place = places[max(new_keys, key=lambda key: current_lines[key].get(name, 0))]
        else:
            largest = max(removed_keys, key=lambda key: pinned_lines[key].get(name, 0))
            file = largest.partition(": ")[0]
            place = next((place for place in places.values() if place[0] == file), (file, 1))
        new_places = tuple(places[key] for key in new_keys) or (place,)
        cost = _describe_cost(name, removed_counts, new_counts, lines, new_places)
        yield Change(*place, name, old_count, count, new_places, cost)


def _list_edited(current_lines: Lines, pinned_lines: Lines) -> tuple[list[str], list[str]]:
    """Return the keys of new and of removed lines. Pairs with equal counts are left out: only their text changed."""
    new_keys = [key for key in current_lines if key not in pinned_lines]
    removed_keys = [key for key in pinned_lines if key not in current_lines]
    for key in [*new_keys]:
        equal_keys = [old_key for old_key in removed_keys if pinned_lines[old_key] == current_lines[key]]
        if equal_keys:
            new_keys.remove(key)
            removed_keys.remove(equal_keys[0])
    return new_keys, removed_keys


def _find_spaces(lines: Lines) -> set[str]:
    return {name.partition(" ")[0] for line in lines.values() for name in line}


def _exclude_spaces(spaces: set[str], lines: Lines) -> Lines:
    remaining = {}
    for key, line in lines.items():
        remaining[key] = {name: count for name, count in line.items() if name.partition(" ")[0] not in spaces}
    return {key: line for key, line in remaining.items() if line}


def _iter_differences(before: Counts, now: Counts) -> Iterator[tuple[str, int, int]]:
    """Yield the name, old value and new value of each count that differs; a missing count is 0."""
    for name in sorted({*now, *before}):
        if now.get(name, 0) != before.get(name, 0):
            yield name, before.get(name, 0), now.get(name, 0)
