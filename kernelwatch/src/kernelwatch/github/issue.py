"""Keeps one issue about the regressions that stand: `kernelwatch issue FILE`, which only says what it would do.

With `--write` it does it: opens the issue, writes it anew, opens it again, or closes it. There is never a second one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import GitHubError

#: The first two lines of the text: what the issue is found by, and how many regressions stand.
_TEXT = re.compile(r"(<!-- coalescing-watch: [\w .,&#;-]+ -->)\n<!-- standing: (\d{1,6}) -->\n")


def put(text: str, repository: str, *, write: bool = False) -> str:
    """Make the issue say what the text says, or only find out what that takes. Return what was, or would be, done.

    Raises
    ------
    GitHubError
        The text is not that of an issue, or GitHub refuses.
    """
    begins = _TEXT.match(text)
    if not begins:
        raise GitHubError(f"the text is not that of an issue: it begins with {text[:80]!r}")
    marker, standing = begins[1], int(begins[2])
    listing = ("-f", "state=all", "-f", "sort=created", "-f", "direction=asc", "-f", "per_page=100")
    there = github.mine(marker, f"repos/{repository}/issues", *listing)
    title = f"{standing} regression{'s' * (standing != 1)} of main" if standing else "No regression of main"
    told: dict[str, Any] = {"title": title, "body": text}
    if there is None:
        if not standing:
            return "nothing stands, and there is no issue"
        return _ask("POST", f"repos/{repository}/issues", told, "open an issue", write)
    number = github.number(github.field(there, int, "number"), "an issue")
    is_open = github.field(there, str, "state") == "open"
    if standing == 0 and not is_open:
        return f"nothing stands, and issue {number} is closed"
    if standing and is_open and _same(there["body"], text):
        return f"issue {number} says so already"
    done = "write anew" if standing and is_open else "open again" if standing else "close"
    state = {"state": "open"} if standing else {"state": "closed", "state_reason": "completed"}
    return _ask("PATCH", f"repos/{repository}/issues/{number}", told | state, f"{done} issue {number}", write)


def _same(one: str, other: str) -> bool:
    """Whether two texts differ in the ends of their lines at most, which GitHub may change."""
    return [line.rstrip() for line in one.splitlines()] == [line.rstrip() for line in other.splitlines()]


def _ask(method: str, address: str, body: dict[str, Any], what: str, write: bool) -> str:
    if not write:
        return f"dry run: would {what}"
    github.api("--method", method, address, body=body)
    return f"done: {what}"


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Keep the issue, or say why not."""
    parser = argparse.ArgumentParser(description="Keep one issue about what stands.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown, as kernelwatch.review.regressions makes it")
    parser.add_argument("--write", action="store_true", help="do it; without it nothing is changed")
    options = parser.parse_args(words)
    return github.told(lambda: put(options.file.read_text("utf-8"), github.repository(), write=options.write))
