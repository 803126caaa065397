"""Lines that changed since a revision of git: advice on a pull request is about these."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import deque

from ..errors import LaunchError
from ..git import environment

#: How many lines were there, and which are there now: "@@ -3 +4,2 @@" is one, and two from the fourth on.
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def since(revision: str) -> set[tuple[str, int]]:
    """Files below this folder and their lines that a revision has not.

    Raises
    ------
    LaunchError
        This folder is in no repository, or git does not know the revision.
    """
    words = ["git", "-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-color", "--no-prefix", "--relative"]
    try:
        done = subprocess.run(
            [*words, "--unified=0", "--end-of-options", revision, "--"],
            env=environment(),
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise LaunchError("--changed needs git") from None
    if done.returncode:
        raise LaunchError(f"--changed {revision}: {done.stderr.decode(errors='replace').strip()}")
    found: set[tuple[str, int]] = set()
    file = ""
    diff = iter(done.stdout.decode(errors="replace").split("\n"))
    for text in diff:
        if text.startswith("+++ "):
            file = text[4:].rstrip("\t")
        elif hunk := _HUNK.match(text):
            before, first, count = (int(each or 1) for each in hunk.groups())
            found |= {(file, line) for line in range(first, first + count)}
            deque(itertools.islice(diff, before + count), maxlen=0)  # a line of a file may look as one of git's
    return found
