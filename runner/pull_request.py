"""Which pull request a workflow is about, and the two commits to compare: `python -m runner.pull_request`.

Prints lines for $GITHUB_OUTPUT. The head is the one that the event names, so a later push changes nothing; all comes
from GitHub, nothing from what the pull request's own jobs have left. The base is where the branch left main.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import without_traceback
from runner import github
from runner.github import GitHubError

MAIN = "main"

_HASH = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class PullRequest:
    """Its number, and the commit that it is about."""

    number: int
    head: str

    def __post_init__(self) -> None:
        if type(self.number) is not int or self.number < 1:
            raise GitHubError(f"{self.number!r} is no number of a pull request")
        if not isinstance(self.head, str) or not _HASH.fullmatch(self.head):
            raise GitHubError(f"{self.head!r} is no hash of a commit")


def find(event: dict[str, Any], repository: str) -> PullRequest:
    """The pull request that an event is about.

    Raises
    ------
    GitHubError
        There is none, or it has moved on.
    """
    for key, reading in _READINGS.items():
        if key in event:
            return reading(event[key], repository)
    raise GitHubError(f"the event is about none of {', '.join(_READINGS)}")


def _itself(described: dict[str, Any], _: str) -> PullRequest:
    return PullRequest(described["number"], described["head"]["sha"])


def _behind(run: dict[str, Any], repository: str) -> PullRequest:
    """The one whose workflow has run: GitHub's event does not name those from forks."""
    whose = f"{run['head_repository']['owner']['login']}:{run['head_branch']}"
    words = [
        "--method",
        "GET",
        f"repos/{repository}/pulls",
        "-f",
        "state=open",
        "-f",
        f"base={MAIN}",
        "-f",
        f"head={whose}",
    ]
    found = [
        PullRequest(each["number"], each["head"]["sha"])
        for each in json.loads(github.api(*words))
        if each["head"]["sha"] == run["head_sha"]
    ]
    if len(found) != 1:
        raise GitHubError(f"{whose} has {len(found)} open pull requests at {run['head_sha']}: it may have moved on")
    return found[0]


_READINGS: dict[str, Callable[[dict[str, Any], str], PullRequest]] = {
    "pull_request": _itself,
    "workflow_run": _behind,
}


def base(head: str, folder: Path) -> str:
    """The commit where a branch left main; the head is fetched, not checked out, if it is not here.

    Raises
    ------
    CalledProcessError
        Git cannot fetch it, or it has nothing in common with main.
    """

    def git(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=check)

    if git("cat-file", "-e", f"{head}^{{commit}}", check=False).returncode:
        git("fetch", "--quiet", "--no-tags", "origin", head)
    return git("merge-base", f"refs/remotes/origin/{MAIN}", head).stdout.strip()


@without_traceback
def main(folder: Path = Path()) -> int:
    """Print number, base and head, or say why there are none."""
    try:
        found = find(github.event(), github.repository())
    except GitHubError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"number={found.number}\nbase={base(found.head, folder)}\nhead={found.head}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
