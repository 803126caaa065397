"""What git knows of the measured commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from asv.util import ProcessError

from kernelwatch.config import settings
from kernelwatch.suite import registry

#: Commits, and changed lines, that are listed of more.
_LISTED = 50


@cache
def measured() -> tuple[str, ...]:
    """Return what of a commit can change machine code, as git names it: the package, or else the kernels' folders."""
    if settings.package_name():
        return (settings.package_name(),)
    origins = [each.origin for each in registry.current_suite().kernels().values()]
    found = {origin.parts[0] if origin.parts[1:] else origin.name for origin in origins}
    return tuple(f":(glob)**/{name}" for each in sorted(found) for name in (each, f"{each}/**")) or (".",)


def described(repo: Any, commits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return subject, author, date and files of commits; what git does not know is left out."""
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


def measure_distance(repo: Any, commit: str) -> dict[str, int] | None:
    """Count the commits from one to HEAD, and those of them that touch what is measured; None if git cannot tell."""
    counts = [_git(repo, "rev-list", "--count", f"{commit}..HEAD", *paths) for paths in ([], ["--", *measured()])]
    return {"commits": int(counts[0]), "touching": int(counts[1])} if all(counts) else None


def changed_lines(repo: Any, base: str, head: str, kernels: Iterable[str]) -> list[dict[str, Any]]:
    """Return the lines that changed in the files that define some kernels; or else in all that is measured.

    Lines that only moved, comments and empty lines are left out where there are others.
    """
    for places in (_definitions(repo, (base, head), kernels), measured()):
        words = ["diff", "--no-color", "--no-ext-diff", "--no-prefix", "--unified=0"]
        # A line that begins with pluses is then no header.
        words += ["--output-indicator-old=<", "--output-indicator-new=>", base, head, "--", *places]
        if places and (found := list(_parsed(_git(repo, *words)))):
            old, new = ({each["text"].strip() for each in found if each["is_new"] is side} for side in (False, True))
            telling = [each for each in found if _is_code(each["text"]) and each["text"].strip() not in old & new]
            return (telling or found)[:_LISTED]
    return []


def _is_code(text: str) -> bool:
    return not re.match(r"\s*(//|/\*|\*(\s|/|$)|$)", text)  # `*p = 1` is


def _definitions(repo: Any, commits: Iterable[str], kernels: Iterable[str]) -> list[str]:
    """The files in which commits define some kernels."""
    entries = [_entry(kernel) for kernel in kernels]
    patterns = [word for entry in entries for word in ("-e", entry)]
    if not patterns:
        return []
    text = _git(repo, "grep", "--word-regexp", "--fixed-strings", *patterns, *commits, "--", *measured())
    found = (line.split(":", 2)[1:] for line in text.split("\n") if "__global__" in line)
    return sorted({file for file, source in found if any(f"{entry}(" in source for entry in entries)})


def _entry(kernel: str) -> str:
    """What the source calls a kernel: "brighten" of `imaging::brighten<{T}, 4>`."""
    known = registry.current_suite().kernels().get(kernel)
    words: list[str] = re.findall(r"\w+", known.entry.partition("<")[0]) if known else []
    return words[-1] if words else kernel


def _parsed(diff: str) -> Iterator[dict[str, Any]]:
    """The changed lines of a diff without context."""
    file, numbers = "", dict[str, int]()
    for line in diff.split("\n"):
        sign, text = line[:1], line[1:]
        if line[:4] in ("--- ", "+++ ") and text[3:] != "/dev/null":
            file = text[3:].strip('"')
        elif found := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            numbers = {"<": int(found[1]), ">": int(found[2])}
        elif sign in numbers:
            yield {"file": file, "number": numbers[sign], "is_new": sign == ">", "text": text}
            numbers[sign] += 1


def _git(repo: Any, *words: str) -> str:
    """What git prints; empty where it knows no such commit."""
    try:
        return str(repo._run_git(list(words), valid_return_codes=(0, 1), display_error=False))
    except ProcessError:
        return ""
