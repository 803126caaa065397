"""The commits that brought regressions: the only one between two measured ones, or what a search found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from kernelwatch.review.regressions.standing import Regression
from kernelwatch.review.rows import Row
from kernelwatch.store import git
from kernelwatch.store.results import TIMED

#: The command that searches: of a process of its own, which can be ended.
SEARCH = ("kernelwatch", "bisect")

#: Seconds that one search may take, and how many there are of one history.
TIME_LIMIT = 1200
MOST = 3

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]


class Culprit(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The commit that brought what changed between two others, as a search found it: three hashes."""

    base: _Hash
    head: _Hash
    commit: _Hash


class Culprits(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What one job leaves for another: hashes, and no text."""

    culprits: Annotated[list[Culprit], Meta(max_length=100)]


class _Commit(msgspec.Struct):
    commit: _Hash


class _Found(msgspec.Struct):
    """Of what a search prints: its culprit."""

    culprit: _Commit


class Described(NamedTuple):
    """A commit as git has it."""

    commit: str
    subject: str
    author: str


def search(regressions: Iterable[Regression], root: Path) -> Culprits:
    """Search the commits that brought regressions, newest first; what cannot be found is left out."""
    wanted: dict[tuple[str, str], list[tuple[Row, str]]] = {}
    for each in regressions:
        wanted.setdefault((each.base, each.head), []).extend((row, each.machine) for row in each.rows)
    unknown = [(*pair, commits) for pair in wanted if len(commits := git.between(root, *pair) or []) > 1]
    found = []
    for base, head, commits in unknown[:MOST]:
        # A number needs no GPU.
        row, machine = min(wanted[base, head], key=lambda each: (each[0].kind == TIMED, -each[0].size))
        commit = _searched(row.name, base, head, machine, root)
        if commit in commits:
            found.append(Culprit(base, head, commit))
    return Culprits(found)


def read(path: Path) -> Culprits:
    """Return what a job left.

    Raises
    ------
    ValueError
        It is of another form.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Culprits)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from None


def culprit(regression: Regression, known: Culprits, root: Path) -> Described | None:
    """The commit that brought a regression; None if several may have."""
    pair = regression.base, regression.head
    commits = git.between(root, *pair) or []
    found = [each.commit for each in known.culprits if (each.base, each.head) == pair and each.commit in commits]
    return described(found[0] if found else commits[0], root) if found or len(commits) == 1 else None


def described(commit: str, root: Path) -> Described:
    """A commit; without subject and author where git does not know it."""
    subject, _, author = (git.asked(root, "show", "--no-patch", "--format=%s%n%an", commit) or "").partition("\n")
    return Described(commit, subject, author)


def _searched(metric: str, good: str, bad: str, machine: str, root: Path) -> str:
    """The hash that the search prints; empty if it finds none in time."""
    words = [sys.executable, "-m", *SEARCH, metric, good, bad, "--machine", machine, "--json"]
    try:
        done = subprocess.run(words, cwd=root, stdout=subprocess.PIPE, check=True, timeout=TIME_LIMIT)
        return msgspec.json.decode(done.stdout, type=_Found).culprit.commit
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        print(f"no culprit between {good[:8]} and {bad[:8]}: {type(error).__name__}", file=sys.stderr)
        return ""
