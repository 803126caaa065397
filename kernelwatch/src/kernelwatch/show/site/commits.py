"""Git's facts about measured commits: authors, dates, files, distances and changed lines."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kernelwatch.config import settings
from kernelwatch.store import git
from kernelwatch.suite import registry

#: Maximum number of commits, and of changed lines, in a list.
_MAX_LISTED = 50


@cache
def find_measured_paths() -> tuple[str, ...]:
    """Return git's pathspecs of files that can change machine code: the package, or where the kernels are, or all."""
    if settings.package_name():
        return (settings.package_name(),)
    origins = [kernel.origin for kernel in registry.current_suite().kernels().values()]
    names = {origin.parts[0] if origin.parts[1:] else origin.name for origin in origins}
    names |= {origin.stem for origin in origins if origin.suffix == ".py"}  # a package, not a module
    return tuple(f":(glob)**/{pattern}" for name in sorted(names) for pattern in (name, f"{name}/**")) or (".",)


def describe_commits(repository: Path, commits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return commit -> its subject, author, date and changed files; commits unknown to git are left out."""
    arguments = ["log", "--no-walk=unsorted", "--ignore-missing", "-m", "--first-parent", "--name-only"]
    # Commits have no zero bytes, and authors and subjects no line breaks.
    records = _run_git(repository, *arguments, "--format=%x00%H%n%an%n%aI%n%s", *commits).split("\0")[1:]
    fields_by_record = (record.split("\n") for record in records)
    return {
        commit: {"subject": subject, "author": author, "date": date, "files": list(filter(None, files))}
        for commit, author, date, subject, *files in fields_by_record
    }


def describe_range(repository: Path, base: str, head: str) -> dict[str, Any]:
    """Count the commits in base..head, and count and list those that touch measured paths, newest first."""
    commit_range = f"{base}..{head}"
    arguments = ["log", f"--max-count={_MAX_LISTED}", "--format=%H %s", commit_range, "--", *find_measured_paths()]
    touching = [line.partition(" ") for line in _run_git(repository, *arguments).split("\n") if line]
    return {
        "count": _count_commits(repository, commit_range),
        "touching_count": _count_commits(repository, commit_range, "--", *find_measured_paths()),
        "touching": [{"commit": commit, "subject": subject} for commit, _, subject in touching],
    }


def _count_commits(repository: Path, *arguments: str) -> int:
    return int(_run_git(repository, "rev-list", "--count", *arguments) or 0)


def count_distance(repository: Path, commit: str) -> dict[str, int] | None:
    """Count the commits from an ancestor to HEAD, and those that touch measured paths; None for other commits."""
    commit_range = f"{commit}..HEAD"
    if git.try_text(repository, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return None
    touching = _count_commits(repository, commit_range, "--", *find_measured_paths())
    return {"commits": _count_commits(repository, commit_range), "touching": touching}


def find_changed_lines(repository: Path, base: str, head: str, kernels: Iterable[str]) -> list[dict[str, Any]]:
    """Return the first _MAX_LISTED changed lines of the files that define `kernels`, or else of all measured paths.

    Moved lines, comments and empty lines are left out, unless nothing else changed.
    """
    for paths in (_find_definitions(repository, (base, head), kernels), find_measured_paths()):
        arguments = ["diff", "--no-color", "--no-ext-diff", "--no-prefix", "--unified=0"]
        # With these indicators, a changed line that begins with pluses does not look like a header.
        arguments += ["--output-indicator-old=<", "--output-indicator-new=>", base, head, "--", *paths]
        if paths and (lines := list(_parse_diff(_run_git(repository, *arguments)))):
            sides = ({line["text"].strip() for line in lines if line["is_new"] is is_new} for is_new in (False, True))
            moved = set.intersection(*sides)
            relevant = [line for line in lines if _is_code(line["text"]) and line["text"].strip() not in moved]
            return (relevant or lines)[:_MAX_LISTED]
    return []


def _is_code(text: str) -> bool:
    return not re.match(r"\s*(//|/\*|\*(\s|/|$)|$)", text)  # `*p = 1` is code


def _find_definitions(repository: Path, commits: Iterable[str], kernels: Iterable[str]) -> list[str]:
    """Return the files that define any of `kernels` at any of `commits`, with `__global__` in the line of the name."""
    entries = [_find_entry_name(kernel) for kernel in kernels]
    patterns = [argument for entry in entries for argument in ("-e", entry)]
    text = _run_git(
        repository, "grep", "--word-regexp", "--fixed-strings", *patterns, *commits, "--", *find_measured_paths()
    )
    matches = (line.split(":", 2)[1:] for line in text.split("\n") if "__global__" in line)
    return sorted({file for file, source in matches if any(f"{entry}(" in source for entry in entries)})


def _find_entry_name(kernel: str) -> str:
    """Return a kernel's name in the source, such as "brighten" for `imaging::brighten<{T}, 4>`."""
    definition = registry.current_suite().kernels().get(kernel)
    identifiers: list[str] = re.findall(r"\w+", definition.entry.partition("<")[0]) if definition else []
    return identifiers[-1] if identifiers else kernel


def _parse_diff(diff: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a diff without context. Lines of base begin with "<", lines of head with ">"."""
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


def _run_git(repository: Path, *arguments: str) -> str:
    """Return the output of git; empty if git fails, as for an unknown commit."""
    return git.try_text(repository, *arguments) or ""
