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
_MAX_LISTED = 50


@cache
def find_measured_paths() -> tuple[str, ...]:
    """Return what of a commit can change machine code, as git names it: the package, or else the kernels' folders."""
    if settings.package_name():
        return (settings.package_name(),)
    origins = [kernel.origin for kernel in registry.current_suite().kernels().values()]
    folders = {origin.parts[0] if origin.parts[1:] else origin.name for origin in origins}
    return tuple(f":(glob)**/{pattern}" for folder in sorted(folders) for pattern in (folder, f"{folder}/**")) or (".",)


def describe_commits(repo: Any, commits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return subject, author, date and files of commits; what git does not know is left out."""
    arguments = ["log", "--no-walk=unsorted", "--ignore-missing", "-m", "--first-parent", "--name-only"]
    # No commit holds a zero byte, and neither author nor subject holds the end of a line.
    records = _run_git(repo, *arguments, "--format=%x00%H%n%an%n%aI%n%s", *commits).split("\0")[1:]
    records_fields = (record.split("\n") for record in records)
    return {
        commit: {"subject": subject, "author": author, "date": date, "files": list(filter(None, files))}
        for commit, author, date, subject, *files in records_fields
    }


def describe_range(repo: Any, base: str, head: str) -> dict[str, Any]:
    """Return how many commits lead from one to another, and which of them touch what is measured, newest first."""
    commit_range = f"{base}..{head}"
    arguments = ["log", f"--max-count={_MAX_LISTED}", "--format=%H %s", commit_range, "--", *find_measured_paths()]
    touching = [line.partition(" ") for line in _run_git(repo, *arguments).split("\n") if line]
    return {
        "count": int(_run_git(repo, "rev-list", "--count", commit_range) or 0),
        "touching": [{"commit": commit, "subject": subject} for commit, _, subject in touching],
    }


def count_distance(repo: Any, commit: str) -> dict[str, int] | None:
    """Count the commits from one to HEAD, and those of them that touch what is measured; None if git cannot tell."""
    counts = [_run_git(repo, "rev-list", "--count", f"{commit}..HEAD", *paths) for paths in ([], ["--", *find_measured_paths()])]
    return {"commits": int(counts[0]), "touching": int(counts[1])} if all(counts) else None


def find_changed_lines(repo: Any, base: str, head: str, kernels: Iterable[str]) -> list[dict[str, Any]]:
    """Return the lines that changed in the files that define some kernels; or else in all that is measured.

    Lines that only moved, comments and empty lines are left out where there are others.
    """
    for paths in (_find_definitions(repo, (base, head), kernels), find_measured_paths()):
        arguments = ["diff", "--no-color", "--no-ext-diff", "--no-prefix", "--unified=0"]
        # A line that begins with pluses is then no header.
        arguments += ["--output-indicator-old=<", "--output-indicator-new=>", base, head, "--", *paths]
        if paths and (lines := list(_parse_diff(_run_git(repo, *arguments)))):
            old, new = ({line["text"].strip() for line in lines if line["is_new"] is is_new} for is_new in (False, True))
            telling_lines = [line for line in lines if _is_code(line["text"]) and line["text"].strip() not in old & new]
            return (telling_lines or lines)[:_MAX_LISTED]
    return []


def _is_code(text: str) -> bool:
    return not re.match(r"\s*(//|/\*|\*(\s|/|$)|$)", text)  # `*p = 1` is


def _find_definitions(repo: Any, commits: Iterable[str], kernels: Iterable[str]) -> list[str]:
    """The files in which commits define some kernels."""
    entry_names = [_find_entry_name(kernel) for kernel in kernels]
    patterns = [argument for entry_name in entry_names for argument in ("-e", entry_name)]
    if not patterns:
        return []
    text = _run_git(repo, "grep", "--word-regexp", "--fixed-strings", *patterns, *commits, "--", *find_measured_paths())
    matches = (line.split(":", 2)[1:] for line in text.split("\n") if "__global__" in line)
    return sorted({file for file, source in matches if any(f"{entry_name}(" in source for entry_name in entry_names)})


def _find_entry_name(kernel: str) -> str:
    """What the source calls a kernel: "brighten" of `imaging::brighten<{T}, 4>`."""
    definition = registry.current_suite().kernels().get(kernel)
    identifiers: list[str] = re.findall(r"\w+", definition.entry.partition("<")[0]) if definition else []
    return identifiers[-1] if identifiers else kernel


def _parse_diff(diff: str) -> Iterator[dict[str, Any]]:
    """The changed lines of a diff without context."""
    file, line_numbers = "", dict[str, int]()
    for line in diff.split("\n"):
        sign, text = line[:1], line[1:]
        if line[:4] in ("--- ", "+++ ") and text[3:] != "/dev/null":
            file = text[3:].strip('"')
        elif hunk := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            line_numbers = {"<": int(hunk[1]), ">": int(hunk[2])}
        elif sign in line_numbers:
            yield {"file": file, "number": line_numbers[sign], "is_new": sign == ">", "text": text}
            line_numbers[sign] += 1


def _run_git(repo: Any, *arguments: str) -> str:
    """What git prints; empty where it knows no such commit."""
    try:
        return str(repo._run_git(list(arguments), valid_return_codes=(0, 1), display_error=False))
    except ProcessError:
        return ""
