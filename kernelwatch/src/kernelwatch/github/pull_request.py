"""Which pull request a workflow is about, and the two commits to compare: `kernelwatch pull-request`.

It prints lines for $GITHUB_OUTPUT. The head is the one that the event names, so a later push changes nothing. All
values come from GitHub, none from files of the pull request's own jobs. The base is the commit where the branch left
main.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import GitHubError
from kernelwatch.store import git
from kernelwatch.store.git import GitError

MAIN = "main"

_HASH = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class PullRequest:
    """Its number, and the commit that it is about."""

    number: int
    head: str

    def __post_init__(self) -> None:
        github.number(self.number, "a pull request")
        if not isinstance(self.head, str) or not _HASH.fullmatch(self.head):
            raise GitHubError(f"{self.head!r} is not the hash of a commit")


def find(event: dict[str, Any], repository: str) -> PullRequest:
    """The pull request that an event is about.

    Raises
    ------
    GitHubError
        There is no such pull request, or its head has changed.
    """
    for key, reading in _READINGS.items():
        if key in event:
            return reading(event[key], repository)
    raise GitHubError(f"the event concerns none of {', '.join(_READINGS)}")


def _itself(described: dict[str, Any], _: str) -> PullRequest:
    return PullRequest(github.field(described, int, "number"), github.field(described, str, "head", "sha"))


def _behind(run: dict[str, Any], repository: str) -> PullRequest:
    """Return the pull request whose workflow has run. GitHub's event does not name those from forks."""
    head = github.field(run, str, "head_sha")
    whose = f"{github.field(run, str, 'head_repository', 'owner', 'login')}:{github.field(run, str, 'head_branch')}"
    words = ("--method", "GET", f"repos/{repository}/pulls", "-f", "state=open", "-f", f"base={MAIN}", "-f")
    listed = github.parsed(github.api(*words, f"head={whose}"))
    if not isinstance(listed, list):
        raise GitHubError(f"GitHub lists no pull requests of {whose}: {str(listed)[:80]}")
    found = [_itself(each, repository) for each in listed if github.field(each, str, "head", "sha") == head]
    if len(found) != 1:
        raise GitHubError(f"{whose} has {len(found)} open pull requests at {head}: it may have moved on")
    return found[0]


_READINGS: dict[str, Callable[[dict[str, Any], str], PullRequest]] = {
    "pull_request": _itself,
    "workflow_run": _behind,
}


def base(head: str, folder: Path) -> str:
    """The commit where a branch left main; the head is fetched, not checked out, if it is not here.

    Raises
    ------
    GitHubError
        git is missing, hangs, cannot fetch the head, or finds no commit in common with main.
    """
    try:
        if git.asked(folder, "cat-file", "-e", f"{head}^{{commit}}", timeout=github.TIME_LIMIT) is None:
            git.run(folder, "fetch", "--quiet", "--no-tags", "origin", head, timeout=github.TIME_LIMIT)
        left = git.text(folder, "merge-base", f"refs/remotes/origin/{MAIN}", head, timeout=github.TIME_LIMIT)
    except GitError as error:
        raise GitHubError(f"git cannot tell where {head} left {MAIN}: {error}") from None
    if not _HASH.fullmatch(left):
        raise GitHubError(f"git cannot tell where {head} left {MAIN}: it says {left[:80]!r}")
    return left


@without_traceback
def main(folder: Path = Path()) -> int:
    """Print number, base and head, or say why there are none."""
    return github.told(lambda: _lines(find(github.event(), github.repository()), folder))


def _lines(found: PullRequest, folder: Path) -> str:
    return f"number={found.number}\nbase={base(found.head, folder)}\nhead={found.head}"
