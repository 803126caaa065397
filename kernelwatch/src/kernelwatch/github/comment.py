"""Puts a review under a pull request, in place of the one before: `kernelwatch comment FILE --pull-request N`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import GitHubError

#: The first line of a review. A later run finds the comment by it.
_MARKER = re.compile(r"<!-- coalescing-watch: [\w .,&#;-]+ -->")


def put(text: str, number: int, repository: str) -> str:
    """Write a comment, or replace this author's comment that begins with the same line. Return what was done.

    Raises
    ------
    GitHubError
        The text is no review, the number is none, or GitHub refuses.
    """
    github.number(number, "a pull request")
    marker = text.partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        raise GitHubError(f"the text is not a review: it begins with {marker[:80]!r}")
    there = github.mine(marker, f"repos/{repository}/issues/{number}/comments")
    if there is not None:
        comment = github.number(github.field(there, int, "id"), "a comment")
        github.api("--method", "PATCH", f"repos/{repository}/issues/comments/{comment}", body={"body": text})
        return f"comment {comment} was written anew"
    github.api("--method", "POST", f"repos/{repository}/issues/{number}/comments", body={"body": text})
    return "a comment was written"


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Write the comment, or say why not."""
    parser = argparse.ArgumentParser(description="Put a review under a pull request.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown of kernelwatch compare, or ptxcount compare")
    parser.add_argument("--pull-request", type=int, required=True, metavar="N")
    options = parser.parse_args(words)
    return github.told(lambda: put(options.file.read_text("utf-8"), options.pull_request, github.repository()))
