"""Whether an environment of the repository asks a reviewer before a job of it runs: `kernelwatch environment gpu`.

GitHub makes an environment that a job names and nobody has set up, without any protection. So another job asks before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import GitHubError


def reviewers(name: str, repository: str) -> int:
    """Return how many people or teams may let a job of an environment run.

    Raises
    ------
    GitHubError
        There is no such environment, it has no reviewers, or GitHub does not say.
    """
    try:
        said = github.parsed(github.api("--method", "GET", f"repos/{repository}/environments/{name}"))
        rules = github.field(said, list, "protection_rules")
        asking = [rule for rule in rules if github.field(rule, str, "type") == "required_reviewers"]
        found = sum(len(github.field(rule, list, "reviewers")) for rule in asking)
    except GitHubError as error:
        raise GitHubError(f"nothing says that the environment {name} is protected; {_advice(name)}: {error}") from None
    if not found:
        raise GitHubError(f"the environment {name} is not protected: it has no reviewers; {_advice(name)}")
    return found


def _advice(name: str) -> str:
    return f"in Settings, Environments, give {name} Required reviewers, then set the label again (docs/runners.md)"


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Say how many reviewers there are, or why no job may run."""
    (name,) = sys.argv[1:] if words is None else words
    asked = "the environment {} asks one of {} reviewers"
    return github.told(lambda: asked.format(name, reviewers(name, github.repository())))
