"""What a commit changed: its files, and the source lines whose counted cost moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwatch import suite
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.review.bisect import probe
from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.bisect.metric import Configuration, configurations
from kernelwatch.review.rows import Row
from kernelwatch.store import git
from kernelwatch.suite import Kind


@dataclass(frozen=True)
class Line:
    """What each access of a source line costs in a counted launch, before the commit or after it."""

    is_after: bool
    number: int
    text: str
    costs: tuple[str, ...]


@dataclass(frozen=True)
class Culprit:
    """The commit, and what it did.

    `said` is git's word on it. `change` is the review of the commit before and this one. `lines` are those whose cost
    moved in the launch `counted`, as they were, then as they are; `notes` say what else a reader may want to do.
    """

    commit: str
    said: str
    change: Row
    lines: list[Line]
    counted: str
    notes: list[str]


def examine(configuration: Configuration, before: Commit, commit: Commit, row: Row, root: Path) -> Culprit:
    """Return what a commit did to a configuration.

    `before` is the commit before it that touched the package, `row` the review of the two.
    """
    notes, lines, counted = list[str](), list[Line](), _counted(configuration)
    parents = git.text(root, "show", "--no-patch", "--format=%P", commit.hash).split()
    if len(parents) > 1:
        left = git.text(root, "merge-base", *parents[:2])
        notes.append(f"it merges a branch; to search there: GOOD={left[:8]} BAD={parents[1][:8]}")
    try:
        lines = _lines((before, commit), counted, root) if counted else []
    except probe.PackageError as error:
        counted = None
        notes.append(f"the source lines cannot be counted: {error}")
    launch = str(suite.launch(counted.benchmark, counted.params)) if counted else ""
    return Culprit(commit.hash, about(commit.hash, root), row, lines, launch, notes)


def about(commit: str, root: Path) -> str:
    """Return what git says of a commit: author, date, subject, and the files that it changed of its first parent."""
    words = ("--stat=90,60,12", "--diff-merges=first-parent", "--format=author   %an <%ae>%ndate     %aI%nsubject  %s")
    return git.text(root, "-c", "core.quotePath=false", "show", *words, commit)


def _counted(configuration: Configuration) -> Configuration | None:
    """Return what to count of a configuration's kernel: the same launch, or else the most like it."""
    if configuration.kind is Kind.COUNTED:
        return configuration
    launch: Any = suite.launch(configuration.benchmark, configuration.params)

    def likeness(other: Configuration) -> tuple[int, bool]:
        found: Any = suite.launch(other.benchmark, other.params)
        return len(found.arguments.items() & launch.arguments.items()), found.flags == FLAGS

    every = (each for each in configurations() if each.kind is Kind.COUNTED)
    return max((each for each in every if {launch.kernel, launch.dtype} <= each.words), key=likeness, default=None)


def _lines(sides: Sequence[Commit], counted: Configuration, root: Path) -> list[Line]:
    asked = counted.benchmark, dict(counted.params)
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda side: probe.ask(side, "lines", asked, root), sides))
    return moved(
        *(
            [Line(bool(place), number, text, tuple(costs)) for number, text, costs in lines]
            for place, lines in enumerate(both)
        )
    )


def moved(before: Sequence[Line], after: Sequence[Line]) -> list[Line]:
    """Return the lines whose cost moved, as they were, then as they are. One whose text or place alone did is none."""
    found = []
    for lines, others in ((before, after), (after, before)):
        more = Counter(each.costs for each in lines) - Counter(each.costs for each in others)
        same = {(each.text, each.costs) for each in others}
        for each in sorted(lines, key=lambda each: (each.text, each.costs) in same):  # those of another text first
            if more[each.costs] > 0:
                more[each.costs] -= 1
                found.append(each)
    return sorted(found, key=lambda each: (each.is_after, each.number))
