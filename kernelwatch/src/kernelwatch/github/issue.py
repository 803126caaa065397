"""Keeps one issue about the regressions that stand: `kernelwatch issue FILE`, which only says what it would do.

With `--write` it does it: opens the issue, writes it anew, opens it again, or closes it. There is never a second one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import HERE, GitHubError

#: The first two lines of the text: what the issue is found by, and how many regressions stand.
_TEXT = re.compile(r"(<!-- coalescing-watch: [\w .,&#;-]+ -->)\n<!-- standing: (\d{1,6}) -->\n")


def put(file: Path, *, write: bool = False) -> str:
    """Make the issue say what a file says, or only find out what that takes. Return what was, or would be, done.

    Raises
    ------
    GitHubError
        The file's text is not that of an issue, or GitHub refuses.
    """
    text = file.read_text("utf-8")
    begins = _TEXT.match(text)
    if not begins:
        raise GitHubError(f"the text is not that of an issue: it begins with {text[:80]!r}")
    marker, standing = begins[1], int(begins[2])
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
def main(words: Sequence[str] | None = None) -> int:
    """Keep the issue, or say why not."""
    parser = argparse.ArgumentParser(description="Keep one issue about what stands.")
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown, as kernelwatch.review.regressions makes it")
    parser.add_argument("--write", action="store_true", help="do it; without it nothing is changed")
    options = parser.parse_args(words)
    return github.told(lambda: put(options.file, write=options.write))
