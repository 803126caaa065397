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
from kernelwatch.review.bisect.judging import Change
from kernelwatch.review.bisect.metric import Configuration, configurations
from kernelwatch.store import git
from kernelwatch.suite import Kind

#: Space -> the unit in which its traffic is counted.
_UNITS = {"global": "sectors", "shared": "wavefronts"}


@dataclass(frozen=True)
class Cubin:
    """Machine code that the commit changed: its name, and the SHA-256 before and after; None where there was none."""

    name: str
    arch: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Line:
    """What a source line does to memory in a counted launch, before the commit or after it."""

    is_after: bool
    number: int
    text: str
    cost: str


@dataclass(frozen=True)
class Culprit:
    """The commit, and what it did.

    `change` is the review of the commit before and this one. `cubins` are the machine code that changed for one
    architecture, of so many that were compared. `lines` are those whose counted cost moved in the launch `counted`, as
    they were, then as they are; `notes` say what else a reader may want to do.
    """

    commit: str
    parents: list[str]
    author: str
    date: str
    subject: str
    files: list[str]
    change: Change
    cubins: list[Cubin]
    cubins_compared: int
    lines: list[Line]
    counted: str
    notes: list[str]


def examine(
    configuration: Configuration, before: Commit, commit: Commit, change: Change, arch: str, root: Path
) -> Culprit:
    """Return what a commit did to a configuration, with the machine code for an architecture.

    `before` is the commit before it that touched the package, `change` the review of the two.
    """
    known, notes = about(commit.hash, root), []
    if len(known["parents"]) > 1:
        one, other = known["parents"][:2]
        left = git.text(root, "merge-base", one, other)
        notes.append(f"it merges a branch; to search there: GOOD={left[:8]} BAD={other[:8]}")
    cubins, compared, lines = list[Cubin](), 0, list[Line]()
    try:
        cubins, compared = _cubins((before, commit), arch, root)
    except probe.PackageError as error:
        notes.append(f"the machine code cannot be compared: {error}")
    counted = _counted(configuration)
    try:
        lines = _lines((before, commit), counted, root) if counted else []
    except probe.PackageError as error:
        counted = None
        notes.append(f"the source lines cannot be counted: {error}")
    launch = str(suite.launch(counted.benchmark, counted.params)) if counted else ""
    return Culprit(
        **known, change=change, cubins=cubins, cubins_compared=compared, lines=lines, counted=launch, notes=notes
    )


def about(commit: str, root: Path) -> dict[str, Any]:
    """Return what git says of a commit, by the names of `Culprit`; its files as they differ from its first parent's."""
    said = git.text(root, "log", "-1", "--format=%H%n%P%n%an <%ae>%n%aI%n%s", commit)
    full, parents, author, date, subject = said.split("\n", 4)
    words = ("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "--diff-merges=first-parent", "-z", full)
    files = [file for file in git.text(root, *words).split("\0") if file]
    return {
        "commit": full, "parents": parents.split(), "author": author, "date": date, "subject": subject, "files": files
    }  # fmt: skip


def _both(sides: Sequence[Commit], task: str, about: Sequence[Any], root: Path) -> list[Any]:
    """Ask the commit before and the culprit at once."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda side, asked: probe.ask(side, task, asked, root), sides, about))


def _cubins(sides: Sequence[Commit], arch: str, root: Path) -> tuple[list[Cubin], int]:
    """Return what changed, and how much there is. Where nvcc is given the same, nothing is compiled."""
    given = [{tuple(each): digest for each, digest in inputs} for inputs in _both(sides, "inputs", (arch, arch), root)]
    every = list(dict.fromkeys([*given[0], *given[1]]))
    other = [each for each in every if given[0].get(each) != given[1].get(each)]
    wanted = [[each for each in other if each in known] for known in given]
    hashes = _both(sides, "cubins", wanted, root) if other else [[], []]
    before, after = (dict(zip(each, found, strict=True)) for each, found in zip(wanted, hashes, strict=True))
    changed = [each for each in other if before.get(each) != after.get(each)]
    return [Cubin(" ".join(each[:3]), arch, before.get(each), after.get(each)) for each in changed], len(every)


def _counted(configuration: Configuration) -> Configuration | None:
    """Return what to count of a configuration's kernel: the same launch, or else the most like it."""
    if configuration.kind is Kind.COUNTED:
        return configuration
    launch = suite.launch(configuration.benchmark, configuration.params)
    assert launch is not None, "it is one of the suite's"

    def likeness(other: Configuration) -> tuple[int, bool]:
        found = suite.launch(other.benchmark, other.params)
        assert found is not None, "it is one of the suite's"
        return len(set(found.arguments.items()) & set(launch.arguments.items())), found.flags == FLAGS

    every = (each for each in configurations() if each.kind is Kind.COUNTED)
    same = [each for each in every if {launch.kernel, launch.dtype} <= each.words]
    return max(same, key=likeness, default=None)


def _lines(sides: Sequence[Commit], counted: Configuration, root: Path) -> list[Line]:
    """Return the lines whose cost moved. A line whose text or place alone changed is none."""
    asked = counted.benchmark, dict(counted.params)
    told = _both(sides, "lines", (asked, asked), root)
    gone, come = ([_line(bool(place), each) for each in lines] for place, lines in enumerate(told))
    return [*_without(gone, come), *_without(come, gone)]


def _line(is_after: bool, told: dict[str, Any]) -> Line:
    unit = _UNITS[told["access"].split()[0]]
    each = told["units"] / max(told["requests"], 1)
    cost = f"{told['access']}: {told['requests']} requests, {told['units']} {unit}, {each:.2f} a request"
    return Line(is_after, told["line"], told["text"], cost)


def _without(lines: Sequence[Line], others: Sequence[Line]) -> list[Line]:
    """Return the lines that have no counterpart with the same cost, those with the same text paired first."""
    texts = Counter((each.text, each.cost) for each in others)
    costs = Counter(each.cost for each in others)
    left, moved = [], []
    for each in lines:
        texts[each.text, each.cost] -= 1
        if texts[each.text, each.cost] < 0:
            left.append(each)
        else:
            costs[each.cost] -= 1
    for each in left:
        costs[each.cost] -= 1
        if costs[each.cost] < 0:
            moved.append(each)
    return moved
