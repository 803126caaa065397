"""Which regressions of a machine's history stand, mended by no later commit, and the commits that brought them.

Such a commit is the only one between two measured ones, or what a search found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from kernelwatch.review.consecutive import Step
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import TOLD, Verdict
from kernelwatch.store import git
from kernelwatch.store.results import TIMED

#: The command that searches: of a process of its own, which can be ended.
SEARCH = ("kernelwatch", "bisect")

#: Seconds that one search may take, and how many there are of one history.
TIME_LIMIT = 1200
MOST = 3

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]


@dataclass(frozen=True)
class Regression:
    """What became worse between two commits of a machine that were measured one after the other.

    The rows have the largest change first, times before numbers.
    """

    machine: str
    base: str
    head: str
    rows: tuple[Row, ...]


@dataclass
class _Open:
    """A configuration that became worse, and how its time has changed since, in times of base."""

    base: str
    head: str
    row: Row
    now: float

    def mended_by(self, later: Row) -> bool:
        """Whether a later step took it back. Numbers are exact; times are followed by what the review told of them."""
        if later.kind != TIMED:
            return later.head <= self.row.base
        if later.judgement.verdict in TOLD:
            self.now *= later.judgement.ratio
        return self.now <= 1 + self.row.judgement.threshold


def standing(machine: str, steps: Iterable[Step]) -> list[Regression]:
    """Return the regressions of a machine that stand, newest first; `steps` are its history, oldest first."""
    opened: dict[str, list[_Open]] = defaultdict(list)
    heads: list[str] = []
    for step in steps:
        heads.append(step.head)
        for base, row in ((each.base.commit, row) for each in step.comparisons for row in each.rows):
            opened[row.name] = [each for each in opened[row.name] if not each.mended_by(row)]
            if row.judgement.verdict is Verdict.SLOWER:
                opened[row.name].append(_Open(base, step.head, row, row.judgement.ratio))
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for each in (each for every in opened.values() for each in every):
        found[each.base, each.head].append(each.row)
    newest_first = sorted(found.items(), key=lambda item: (-heads.index(item[0][1]), item[0]))
    return [Regression(machine, *ends, tuple(sorted(rows, key=_worst))) for ends, rows in newest_first]


def _worst(row: Row) -> tuple[bool, float, str]:
    return row.kind != TIMED, -row.size, row.name


class Culprit(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The commit that brought what changed between two others, as a search found it: three hashes."""

    base: _Hash
    head: _Hash
    commit: _Hash


class Culprits(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What one job leaves for another: hashes, and no text."""

    culprits: Annotated[list[Culprit], Meta(max_length=100)]


class Described(NamedTuple):
    """A commit as git has it."""

    commit: str
    subject: str
    author: str


def search(regressions: Iterable[Regression], root: Path) -> Culprits:
    """Search the commits that brought regressions, newest first; what cannot be found is left out."""
    wanted: dict[tuple[str, str], list[tuple[Row, str]]] = defaultdict(list)
    for each in regressions:
        wanted[each.base, each.head] += [(row, each.machine) for row in each.rows]
    unknown = [(*pair, commits) for pair in wanted if len(commits := git.between(root, *pair) or []) > 1]
    found = []
    for base, head, commits in unknown[:MOST]:
        # A number needs no GPU.
        row, machine = min(wanted[base, head], key=lambda each: (each[0].kind == TIMED, -each[0].size))
        commit = _searched(row.name, base, head, machine, root)
        if commit in commits:
            found.append(Culprit(base, head, commit))
    return Culprits(found)


def _searched(metric: str, good: str, bad: str, machine: str, root: Path) -> str:
    """The hash that the search prints; empty if it finds none in time."""
    words = [sys.executable, "-m", *SEARCH, metric, good, bad, "--machine", machine, "--json"]
    try:
        done = subprocess.run(words, cwd=root, stdout=subprocess.PIPE, check=True, timeout=TIME_LIMIT)
        return str(json.loads(done.stdout)["culprit"]["commit"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        print(f"no culprit between {good[:8]} and {bad[:8]}: {type(error).__name__}", file=sys.stderr)
        return ""


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
