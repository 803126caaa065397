"""What git knows of the commits between two, and its search: only those that touch the package can move a number."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelwatch import settings
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.store import git

#: The package that is measured. All else comes from today's checkout, so it is the same for every commit.
PACKAGE = settings.package()

#: What `git bisect log` says at the end.
_SUSPECT = re.compile(r"^# (?:possible )?first bad commit: \[(\w+)\]", re.MULTILINE)


@dataclass(frozen=True)
class Commit:
    """A commit, and the hash of the package in it; equal hashes are equal packages. Empty where it has none."""

    hash: str
    package: str
    subject: str = ""


def packages(commits: Sequence[str], root: Path) -> dict[str, str]:
    """Return the hash of the package of each commit; empty where it has none, or git does not know the commit."""
    asked = "".join(f"{commit}:{PACKAGE}\n" for commit in commits)
    said = git.text(root, "cat-file", "--batch-check=%(objectname)", input=asked).splitlines()
    return {commit: "" if " " in answer else answer for commit, answer in zip(commits, said, strict=True)}


def described(hashes: Sequence[str], root: Path) -> list[Commit]:
    """Return commits by their hashes."""
    known = packages(hashes, root)
    subjects = git.text(root, "log", "--no-walk=unsorted", "--format=%s%x00", *hashes).rstrip("\0").split("\0\n")
    return [Commit(each, known[each], subject) for each, subject in zip(hashes, subjects, strict=True)]


def between(good: str, bad: str, root: Path) -> list[Commit]:
    """Return good and, oldest first, the commits behind it that changed the package: first parents only.

    The last one has bad's package.

    Raises
    ------
    CannotCompareError
        Good is no ancestor of bad.
    """
    if git.asked(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise CannotCompareError(
            f"{good[:8]} is no ancestor of {bad[:8]}: give as GOOD a commit that BAD comes from; "
            f"where they part: git merge-base {good[:8]} {bad[:8]}"
        )
    words = ("rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", PACKAGE or ".")
    return described([good, *git.text(root, *words).split()], root)


def suspects(commits: Sequence[Commit], judged: Callable[[Commit], str], root: Path) -> list[Commit]:
    """Return the commits of which one turned good into bad, oldest first: a single one, if git finds it.

    Of the `commits`, as from `between`, `judged` says "good", "bad" or "skip".
    """
    known = {commit.hash: commit for commit in commits}
    with _bisection(commits[0].hash, commits[-1].hash, root) as tree:
        while not (left := _SUSPECT.findall(git.text(tree, "bisect", "log"))):
            # Its exit code is 2 where only skipped commits are left, which the log says, too.
            git.asked(tree, "bisect", judged(known[git.text(tree, "rev-parse", "BISECT_HEAD")]))
    return [commit for commit in commits if commit.hash in left]


@contextmanager
def _bisection(good: str, bad: str, root: Path) -> Iterator[Path]:
    """Begin git's search in a worktree of its own, without files: no checkout and no ref of the user's changes."""
    with tempfile.TemporaryDirectory(prefix="bisect-") as folder:
        tree = Path(folder) / Path(folder).name
        git.text(root, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(tree), bad)
        try:
            git.text(tree, "bisect", "start", "--no-checkout", "--first-parent", bad, good, "--", PACKAGE or ".")
            yield tree
        finally:
            git.text(root, "worktree", "remove", "--force", str(tree))
