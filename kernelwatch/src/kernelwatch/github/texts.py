"""Puts a review under a pull request, or says in one issue which regressions stand; each in place of the text before.

`kernelwatch comment FILE --pull-request N`; `kernelwatch issue FILE`, which only says what it would do, and with
`--write` does it: opens the issue, writes it anew, opens it again, or closes it. There is never a second one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import HERE, GitHubError

#: The first line of a text, by which a later run finds it; in an issue the second says how many regressions stand.
_MARKER = r"(<!-- coalescing-watch: [\w .,&#;-]+ -->)"
_REVIEW = re.compile(rf"{_MARKER}(?:\n|\Z)")
_ISSUE = re.compile(rf"{_MARKER}\n<!-- standing: (\d{{1,6}}) -->\n")


def _begins(text: str, form: re.Pattern[str], what: str) -> re.Match[str]:
    if (found := form.match(text)) is None:
        raise GitHubError(f"the text is not {what}: it begins with {text[:80]!r}")
    return found


def put_comment(file: Path, number: int) -> str:
    """Write a comment, or replace this author's comment that begins with the same line. Return what was done.

    Raises
    ------
    GitHubError
        The file holds no review, or GitHub refuses.
    """
    marker = _begins(file.read_text("utf-8"), _REVIEW, "a review")[1]
    there = github.mine(marker, f"{HERE}/issues/{number}/comments")
    if there is None:
        github.api("--method", "POST", f"{HERE}/issues/{number}/comments", "-F", f"body=@{file}")
        return "a comment was written"
    comment = github.field(there, int, "id")
    github.api("--method", "PATCH", f"{HERE}/issues/comments/{comment}", "-F", f"body=@{file}")
    return f"comment {comment} was written anew"


def put_issue(file: Path, *, write: bool = False) -> str:
    """Make the issue say what a file says, or only find out what that takes. Return what was, or would be, done.

    Raises
    ------
    GitHubError
        The file's text is not that of an issue, or GitHub refuses.
    """
    text = file.read_text("utf-8")
    marker, count = _begins(text, _ISSUE, "that of an issue").groups()
    standing = int(count)
    listing = ("-f", "state=all", "-f", "sort=created", "-f", "direction=asc", "-f", "per_page=100")
    there = github.mine(marker, f"{HERE}/issues", *listing)
    if there is None:
        if not standing:
            return "nothing stands, and there is no issue"
        asked, done = ["--method", "POST", f"{HERE}/issues"], "open an issue"
    else:
        number, is_open = github.field(there, int, "number"), github.field(there, str, "state") == "open"
        if not standing and not is_open:
            return f"nothing stands, and issue {number} is closed"
        if standing and is_open and _lines(there["body"]) == _lines(text):
            return f"issue {number} says so already"
        done = f"{'write anew' if standing and is_open else 'open again' if standing else 'close'} issue {number}"
        state = ["state=open"] if standing else ["state=closed", "state_reason=completed"]
        asked = ["--method", "PATCH", f"{HERE}/issues/{number}", *(word for one in state for word in ("-f", one))]
    if not write:
        return f"dry run: would {done}"
    title = f"{standing} regression{'s' * (standing != 1)} of main" if standing else "No regression of main"
    github.api(*asked, "-f", f"title={title}", "-F", f"body=@{file}")
    return f"done: {done}"


def _lines(text: str) -> list[str]:
    """The lines of a text without their ends, which GitHub may change."""
    return [line.rstrip() for line in text.splitlines()]


@without_traceback
def comment(words: Sequence[str] | None = None) -> int:
    """Write the comment, or say why not."""
    parser = argparse.ArgumentParser(description="Put a review under a pull request.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown of kernelwatch compare, or ptxcount compare")
    parser.add_argument("--pull-request", type=int, required=True, metavar="N")
    options = parser.parse_args(words)
    return github.told(lambda: put_comment(options.file, options.pull_request))


@without_traceback
def issue(words: Sequence[str] | None = None) -> int:
    """Keep the issue, or say why not."""
    parser = argparse.ArgumentParser(description="Keep one issue about what stands.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown, as of kernelwatch regressions")
    parser.add_argument("--write", action="store_true", help="do it; without it nothing is changed")
    options = parser.parse_args(words)
    return github.told(lambda: put_issue(options.file, write=options.write))
