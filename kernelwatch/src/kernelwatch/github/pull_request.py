"""Which pull request a workflow is about, and the two commits to compare: `kernelwatch pull-request`.

It prints lines for $GITHUB_OUTPUT. The head is the one that the event names, so a later push changes nothing. All
values come from GitHub, none from files of the pull request's own jobs. The base is the commit where the branch left
main.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import HERE, GitHubError
from kernelwatch.store import git
from kernelwatch.store.git import GitError

MAIN = "main"


def find(event: Any) -> tuple[int, str]:
    """Return the number and the head of the pull request that an event is about, or whose workflow has run.

    Raises
    ------
    GitHubError
        There is no such pull request, or its head has changed.
    """
    described = event
    if isinstance(event, dict) and "workflow_run" in event:
        described = {"pull_request": _behind(event["workflow_run"])}
    return (
        github.field(described, int, "pull_request", "number"),
        _hash(github.field(described, str, "pull_request", "head", "sha")),
    )


def _behind(run: object) -> Any:
    """Return the pull request whose workflow has run. GitHub's event does not name those from forks."""
    head = github.field(run, str, "head_sha")
    whose = f"{github.field(run, str, 'head_repository', 'owner', 'login')}:{github.field(run, str, 'head_branch')}"
    words = ("-f", "state=open", "-f", f"base={MAIN}", "-f", f"head={whose}", "--jq", ".[]")
    found = [each for each in github.get(f"{HERE}/pulls", *words) if github.field(each, str, "head", "sha") == head]
    if len(found) != 1:
        raise GitHubError(f"{whose} has {len(found)} open pull requests at {head}: it may have moved on")
    return found[0]


def _hash(said: str) -> str:
    if not re.fullmatch("[0-9a-f]{40}", said):
        raise GitHubError(f"{said[:80]!r} is not the hash of a commit")
    return said


def base(head: str, folder: Path) -> str:
    """Return the commit where a branch left main; the head is fetched, not checked out, if it is not here.

    Raises
    ------
    GitHubError
        git is missing, hangs, cannot fetch the head, or finds no commit in common with main.
    """
    try:
        if git.asked(folder, "cat-file", "-e", f"{head}^{{commit}}", timeout=github.TIME_LIMIT) is None:
            git.run(folder, "fetch", "--quiet", "--no-tags", "origin", head, timeout=github.TIME_LIMIT)
        return _hash(git.text(folder, "merge-base", f"refs/remotes/origin/{MAIN}", head, timeout=github.TIME_LIMIT))
    except (GitError, GitHubError) as error:
        raise GitHubError(f"git cannot tell where {head} left {MAIN}: {error}") from None


@without_traceback
def main(folder: Path = Path()) -> int:
    """Print number, base and head, or say why there are none."""
    return github.told(lambda: _lines(folder))


def _lines(folder: Path) -> str:
    event = Path(os.environ.get("GITHUB_EVENT_PATH", "of no workflow of GitHub's")).read_text("utf-8")
    number, head = find(github.parsed(event))
    return f"number={number}\nbase={base(head, folder)}\nhead={head}"
