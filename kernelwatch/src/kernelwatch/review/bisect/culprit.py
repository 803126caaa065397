"""What a commit changed: its files, the machine code, and the source lines whose counted cost moved."""

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
from kernelwatch.review.rows import kernel as kernel_of
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

    `said` is git's word on it. `change` is the review of the commit before and this one. `cubins` are the SHA-256 of
    the `kernel`'s machine code for an `arch`, before and after, by dtype and flags; None where there was none. `lines`
    are those whose counted cost moved in the launch `counted`, as they were, then as they are; `notes` say what else a
    reader may want to do.
    """

    commit: str
    said: str
    change: Row
    kernel: str
    arch: str
    cubins: dict[str, tuple[str | None, str | None]]
    lines: list[Line]
    counted: str
    notes: list[str]


def examine(configuration: Configuration, before: Commit, commit: Commit, row: Row, arch: str, root: Path) -> Culprit:
    """Return what a commit did to a configuration, with its kernel's machine code for an architecture.

    `before` is the commit before it that touched the package, `row` the review of the two.
    """
    both, notes = (before, commit), list[str]()
    cubins, lines, counted = dict[str, tuple[str | None, str | None]](), list[Line](), _counted(configuration)
    kernel = kernel_of(configuration.benchmark, configuration.params)
    parents = git.text(root, "show", "--no-patch", "--format=%P", commit.hash).split()
    if len(parents) > 1:
        left = git.text(root, "merge-base", *parents[:2])
        notes.append(f"it merges a branch; to search there: GOOD={left[:8]} BAD={parents[1][:8]}")
    try:
        old, new = _both(both, "cubins", (kernel, arch), root)
        cubins = {name: (old.get(name), new.get(name)) for name in {**old, **new}}
        lines = _lines(both, counted, root) if counted else []
    except probe.PackageError as error:
        notes.append(f"its machine code and source lines cannot be compared: {error}")
    launch = str(suite.launch(counted.benchmark, counted.params)) if counted else ""
    return Culprit(commit.hash, about(commit.hash, root), row, kernel, arch, cubins, lines, launch, notes)


def about(commit: str, root: Path) -> str:
    """Return what git says of a commit: author, date, subject, and the files that it changed of its first parent."""
    words = ("--stat=90,60,12", "--diff-merges=first-parent", "--format=author   %an <%ae>%ndate     %aI%nsubject  %s")
    return git.text(root, "-c", "core.quotePath=false", "show", *words, commit)


def _both(sides: Sequence[Commit], task: str, asked: Any, root: Path) -> list[Any]:
    """Ask the commit before and the culprit at once."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda side: probe.ask(side, task, asked, root), sides))


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
    both = (
        [Line(bool(place), number, text, tuple(costs)) for number, text, costs in lines]
        for place, lines in enumerate(_both(sides, "lines", asked, root))
    )
    return moved(*both)


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
