"""Puts a review under a pull request, in place of the one before: `kernelwatch comment FILE --pull-request N`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import HERE, GitHubError

#: The first line of a review. A later run finds the comment by it.
_MARKER = re.compile(r"<!-- coalescing-watch: [\w .,&#;-]+ -->")


def put(file: Path, number: int) -> str:
    """Write a comment, or replace this author's comment that begins with the same line. Return what was done.

    Raises
    ------
    GitHubError
        The file holds no review, or GitHub refuses.
    """
    marker = file.read_text("utf-8").partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        raise GitHubError(f"the text is not a review: it begins with {marker[:80]!r}")
    there = github.mine(marker, f"{HERE}/issues/{number}/comments")
    if there is None:
        github.api("--method", "POST", f"{HERE}/issues/{number}/comments", "-F", f"body=@{file}")
        return "a comment was written"
    comment = github.field(there, int, "id")
    github.api("--method", "PATCH", f"{HERE}/issues/comments/{comment}", "-F", f"body=@{file}")
    return f"comment {comment} was written anew"


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Write the comment, or say why not."""
    parser = argparse.ArgumentParser(description="Put a review under a pull request.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown of kernelwatch compare, or ptxcount compare")
    parser.add_argument("--pull-request", type=int, required=True, metavar="N")
    options = parser.parse_args(words)
    return github.told(lambda: put(options.file, options.pull_request))
