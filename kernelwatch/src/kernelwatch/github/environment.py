"""Whether an environment of the repository asks a reviewer before a job of it runs: `kernelwatch environment gpu`.

GitHub makes an environment that a job names and nobody has set up, without any protection. So another job asks before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kernelwatch.command import without_traceback
from kernelwatch.github import client as github
from kernelwatch.github.client import HERE, GitHubError


def protected(name: str) -> str:
    """Say how many people or teams may let a job of an environment run. Raises GitHubError if it does not ask them."""
    try:
        rules = github.field(github.parsed(github.api(f"{HERE}/environments/{name}")), list, "protection_rules")
        asking = [rule for rule in rules if github.field(rule, str, "type") == "required_reviewers"]
        found = sum(len(github.field(rule, list, "reviewers")) for rule in asking)
        if not found:
            raise GitHubError("it has no reviewers")
    except GitHubError as error:
        advice = f"in Settings, Environments, give {name} Required reviewers, then set the label again"
        why = f"nothing says that the environment {name} is protected; {advice} (docs/runners.md)"
        raise GitHubError(f"{why}: {error}") from None
    return f"the environment {name} asks one of {found} reviewers"


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Say how many reviewers there are, or why no job may run."""
    (name,) = sys.argv[1:] if words is None else words
    return github.told(lambda: protected(name))
