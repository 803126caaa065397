"""What git knows of the commits between two: only those that touch `gpu_kernels` can have moved a number."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelwatch.review.commits import CannotCompareError

#: The package that is measured. All else comes from today's checkout, so it is the same for every commit.
PACKAGE = "gpu_kernels"


@dataclass(frozen=True)
class Commit:
    """A commit, and the hash of the package in it; equal hashes are equal packages. Empty where it has none."""

    hash: str
    package: str
    subject: str = ""


def _git(root: Path, *words: str, input: str | None = None) -> str:
    done = subprocess.run(["git", *words], cwd=root, input=input, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def packages(commits: Sequence[str], root: Path) -> dict[str, str]:
    """Return the hash of the package of each commit; empty where it has none, or git does not know the commit."""
    asked = "".join(f"{commit}:{PACKAGE}\n" for commit in commits)
    said = _git(root, "cat-file", "--batch-check=%(objectname)", input=asked).splitlines()
    return {commit: "" if " " in answer else answer for commit, answer in zip(commits, said, strict=True)}


def between(good: str, bad: str, root: Path) -> list[Commit]:
    """Return good and, oldest first, the commits behind it that changed the package: first parents only.

    The last one has bad's package.

    Raises
    ------
    CannotCompareError
        Good is no ancestor of bad.
    """
    try:
        _git(root, "merge-base", "--is-ancestor", good, bad)
    except subprocess.CalledProcessError:
        raise CannotCompareError(
            f"{good[:8]} is no ancestor of {bad[:8]}: give as GOOD a commit that BAD comes from; "
            f"where they part: git merge-base {good[:8]} {bad[:8]}"
        ) from None
    words = ("rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", PACKAGE)
    hashes = [good, *_git(root, *words).split()]
    known = packages(hashes, root)
    return [Commit(each, known[each], _git(root, "log", "-1", "--format=%s", each)) for each in hashes]


@dataclass(frozen=True)
class Description:
    """What a reader wants to know of a commit."""

    commit: str
    parents: list[str]
    author: str
    date: str
    subject: str
    files: list[str]

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def describe(commit: str, root: Path) -> Description:
    """Return what git says of a commit; its files as they differ from its first parent's."""
    said = _git(root, "log", "-1", "--format=%H%n%P%n%an <%ae>%n%aI%n%s", commit)
    full, parents, author, date, subject = said.split("\n", 4)
    words = ("diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "--diff-merges=first-parent", "-z", commit)
    files = [file for file in _git(root, *words).split("\0") if file]
    return Description(full, parents.split(), author, date, subject, files)


def merge_base(one: str, other: str, root: Path) -> str:
    """Return the best common ancestor of two commits."""
    return _git(root, "merge-base", one, other)
