"""What workflows know and may ask of GitHub, through the `gh` that its runners have."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


class GitHubError(Exception):
    """GitHub, or the event that it describes, is not as expected; the message says what is wrong."""


def repository() -> str:
    """The repository, as owner/name."""
    return os.environ["GITHUB_REPOSITORY"]


def event() -> dict[str, Any]:
    """What set the workflow off, in GitHub's words."""
    document: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    return document


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
        With what gh says.
    """
    given = ["--input", "-"] if body is not None else []
    text = json.dumps(body) if body is not None else None
    done = subprocess.run(["gh", "api", *words, *given], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GitHubError(f"gh api {words[0]}: {done.stderr.strip()}")
    return done.stdout
