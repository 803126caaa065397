"""What workflows ask of GitHub, through the `gh` that its runners have, which knows this checkout's repository."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from kernelwatch.command import one_line

T = TypeVar("T")

#: What addresses begin with.
HERE = "repos/{owner}/{repo}"

#: Seconds that an answer may take.
TIME_LIMIT = 300

#: Who writes with a workflow's own token.
AUTHOR = "github-actions[bot]"


class GitHubError(Exception):
    """GitHub, or the event that it describes, is not as expected; the message says what is wrong."""


def api(*words: str) -> str:
    """Return what `gh api` answers.

    Raises
    ------
    GitHubError
        With what gh says; or there is no gh, or it says nothing in time, or nothing that is text.
    """
    asked = next((word for word in words if word.startswith("repos/")), words[0])
    try:
        done = subprocess.run(
            ["gh", "api", *words], capture_output=True, encoding="utf-8", check=False, timeout=TIME_LIMIT
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise GitHubError(f"gh api {asked}: {error}") from None
    if done.returncode:
        raise GitHubError(f"gh api {asked}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def get(*words: str) -> list[Any]:
    """Return what `gh api` lists, a JSON value a line. Raises GitHubError as `api`, or if a line is none."""
    return [parsed(line) for line in api("--method", "GET", *words).splitlines()]


def parsed(text: str) -> Any:
    """Parse JSON of GitHub's. Raises GitHubError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GitHubError(f"GitHub's answer is not JSON: {error}: {text[:80]!r}") from None


def field(described: object, kind: type[T], *names: str) -> T:
    """Return a field of GitHub's object, by one name for each level.

    Raises
    ------
    GitHubError
        There is no such field, or it has another type, or is a number below 1, which would become part of an address.
    """
    found: Any = described
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if type(found) is not kind or (isinstance(found, int) and found < 1):
        raise GitHubError(f"GitHub's answer lacks {'.'.join(names)}: {str(described)[:80]}")
    return found


def mine(marker: str, *words: str) -> Any:
    """Return the oldest text of AUTHOR's whose first line is a marker, as GitHub describes it; None if there is none.

    `words` are the arguments of `gh api` that list comments or issues. Raises GitHubError as `get`.
    """
    own = f'select(.user.login == "{AUTHOR}" and (.pull_request | not))'
    listed = get("--paginate", *words, "--jq", f'.[] | {own} | {{id, number, state, body: (.body // "")}}')
    return next((each for each in listed if field(each, str, "body").partition("\n")[0].rstrip() == marker), None)


def told(do: Callable[[], str]) -> int:
    """Print what was done, or in one line why not; return the exit code."""
    try:
        print(do())
    except (GitHubError, OSError, UnicodeDecodeError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    return 0
