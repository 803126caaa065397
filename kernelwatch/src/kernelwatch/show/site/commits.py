"""What git knows of the measured commits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from asv.util import ProcessError

from kernelwatch import settings, suite

#: Commits that are listed of a longer row.
_LISTED = 50


@cache
def measured() -> tuple[str, ...]:
    """Return what of a commit can change machine code, as git names it: the package, or else the kernels' folders."""
    if settings.package():
        return (settings.package(),)
    places = [each.place for each in suite.current().kernels().values()]
    found = {place.parts[0] if place.parts[1:] else place.name for place in places}
    return tuple(f":(glob)**/{name}" for each in sorted(found) for name in (each, f"{each}/**")) or (".",)


def described(repo: Any, commits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return subject, author, date and files of commits; those that git does not know are left out.

    Parameters
    ----------
    repo : asv.plugins.git.Git
        The repository.
    commits : iterable of str
        Full hashes.
    """
    words = ["log", "--no-walk=unsorted", "--ignore-missing", "-m", "--first-parent", "--name-only"]
    # No commit holds a zero byte, and neither author nor subject holds the end of a line.
    records = _git(repo, *words, "--format=%x00%H%n%an%n%aI%n%s", *commits).split("\0")[1:]
    every = (record.split("\n") for record in records)
    return {
        commit: {"subject": subject, "author": author, "date": date, "files": list(filter(None, files))}
        for commit, author, date, subject, *files in every
    }


def between(repo: Any, base: str, head: str) -> dict[str, Any]:
    """Return how many commits lead from one to another, and which of them touch what is measured, newest first."""
    reach = f"{base}..{head}"
    words = ["log", f"--max-count={_LISTED}", "--format=%H %s", reach, "--", *measured()]
    touching = [line.partition(" ") for line in _git(repo, *words).split("\n") if line]
    return {
        "count": int(_git(repo, "rev-list", "--count", reach) or 0),
        "touching": [{"commit": commit, "subject": subject} for commit, _, subject in touching],
    }


def lines(repo: Any, commit: str, names: list[str]) -> dict[str, Any]:
    """Return the file and the line where a commit defines each of some kernels."""
    if not names:
        return {}
    entries = {name: _entry(name) for name in names}
    patterns = [word for entry in entries.values() for word in ("-e", entry)]
    text = _git(repo, "grep", "-n", "--word-regexp", "--fixed-strings", *patterns, commit, "--", *measured())
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        _, file, number, source = line.split(":", 3)
        for name, entry in entries.items():
            if name not in found and f"{entry}(" in source and "__global__" in source:
                found[name] = {"file": file, "line": int(number)}
    return found


def _entry(kernel: str) -> str:
    """What the source calls a kernel: "brighten" of `imaging::brighten<{T}, 4>`."""
    known = suite.current().kernels().get(kernel)
    words: list[str] = re.findall(r"\w+", known.entry.partition("<")[0]) if known else []
    return words[-1] if words else kernel


def _git(repo: Any, *words: str) -> str:
    """What git prints; empty where it knows no such commit."""
    try:
        return str(repo._run_git(list(words), valid_return_codes=(0, 1), display_error=False))
    except ProcessError:
        return ""
