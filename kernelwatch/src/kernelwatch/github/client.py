"""What workflows ask of GitHub, through the `gh` that its runners have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from kernelwatch.command import one_line

T = TypeVar("T")

#: Seconds that an answer may take.
TIME_LIMIT = 300


#: Who writes with a workflow's own token.
AUTHOR = "github-actions[bot]"


class GitHubError(Exception):
    """GitHub, or the event that it describes, is not as expected; the message says what is wrong."""


def repository() -> str:
    """The repository, as owner/name.

    Raises
    ------
    GitHubError
        The variable is not set, or has another form.
    """
    name = _of_environment("GITHUB_REPOSITORY")
    # The name becomes part of an address, as does everything else that is checked here.
    if not re.fullmatch(r"[A-Za-z0-9-]+/(?!\.{1,2}$)[\w.-]+", name, re.ASCII):
        raise GitHubError(f"GITHUB_REPOSITORY is {name!r}, which is not of the form owner/name")
    return name


def number(value: object, what: str) -> int:
    """Check a number that GitHub gave, before it becomes part of an address.

    Raises
    ------
    GitHubError
        The value is not a positive integer.
    """
    if type(value) is not int or value < 1:
        raise GitHubError(f"{value!r} is not a number of {what}")
    return value


def event() -> dict[str, Any]:
    """Return the event that started the workflow, as GitHub describes it.

    Raises
    ------
    GitHubError
        The variable is not set, or the file is not a JSON object.
    """
    path = Path(_of_environment("GITHUB_EVENT_PATH"))
    try:
        document = parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise GitHubError(f"the event in {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise GitHubError(f"the event in {path} is no JSON object")
    return document


def parsed(text: str) -> Any:
    """Parse a JSON answer of GitHub's.

    Raises
    ------
    GitHubError
        It is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GitHubError(f"GitHub's answer is not JSON: {error}: {text[:80]!r}") from None


def field(described: object, kind: type[T], *names: str) -> T:
    """Return a field of GitHub's object, by one name for each level.

    Raises
    ------
    GitHubError
        There is no such field, or it has another type.
    """
    found = described
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, kind):
        raise GitHubError(f"GitHub's answer lacks {'.'.join(names)}: {str(described)[:80]}")
    return found


def mine(marker: str, *words: str) -> dict[str, Any] | None:
    """Return the oldest text of AUTHOR's whose first line is a marker, as GitHub describes it; None if there is none.

    Parameters
    ----------
    marker : str
        The line.
    words : str
        Arguments of `gh api` that list comments or issues.

    Raises
    ------
    GitHubError
        As `api`; or the answer is no list of texts.
    """
    own = f'select(.user.login == "{AUTHOR}" and (.pull_request | not))'
    chosen = f'.[] | {own} | {{id, number, state, body: (.body // "")}}'
    for line in api("--method", "GET", "--paginate", *words, "--jq", chosen).splitlines():
        found = parsed(line)
        if field(found, str, "body").partition("\n")[0].rstrip() == marker:
            return dict(found)
    return None


def told(do: Callable[[], str]) -> int:
    """Print what was done, or in one line why not; return the exit code."""
    try:
        print(do())
    except (GitHubError, OSError, UnicodeDecodeError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    return 0


def api(*words: str, body: dict[str, Any] | None = None) -> str:
    """What `gh api` answers.

    Parameters
    ----------
    words : str
        Arguments of `gh api`.
    body : dict of str to object, optional
        Sent as JSON.

    Raises
    ------
    GitHubError
        With what gh says; or there is no gh, or it says nothing in time, or nothing that is text.
    """
    given = ["--input", "-"] if body is not None else []
    text = json.dumps(body) if body is not None else None
    command = ["gh", "api", *words, *given]
    asked = next((word for word in words if word.startswith("repos/")), words[0])
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", check=False, timeout=TIME_LIMIT
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise GitHubError(f"gh api {asked}: {error}") from None
    if done.returncode:
        raise GitHubError(f"gh api {asked}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def _of_environment(variable: str) -> str:
    try:
        return os.environ[variable]
    except KeyError:
        raise GitHubError(f"{variable} is not set: this is for GitHub's workflows") from None
