"""Whether a job may enter the environment that leads to a GPU: only where GitHub says that a reviewer is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelwatch.github import environment
from kernelwatch.github.client import HERE
from tests.kernelwatch.github.test_pull_request import StandIn, gh

__all__ = ["gh"]

ASKED = f"{HERE}/environments/gpu"

REVIEWERS = {"id": 1, "type": "required_reviewers", "prevent_self_review": True, "reviewers": [{"type": "User"}]}
TIMER = {"id": 2, "type": "wait_timer", "wait_timer": 30}
BRANCHES = {"id": 3, "type": "branch_policy"}

#: GitHub's answer, None for an error, and what is said.
ANSWERS: list[tuple[Any, str]] = [
    ({"protection_rules": [REVIEWERS]}, "asks one of 1 reviewers"),
    ({"protection_rules": [BRANCHES, TIMER, {**REVIEWERS, "reviewers": [{}, {}]}]}, "asks one of 2 reviewers"),
    ({"protection_rules": [TIMER, BRANCHES]}, "it has no reviewers"),
    ({"protection_rules": [{**REVIEWERS, "reviewers": []}]}, "it has no reviewers"),
    ({"protection_rules": [{"type": "required_reviewers"}]}, "lacks reviewers"),
    ({"protection_rules": None}, "lacks protection_rules"),
    ({"protection_rules": ["required_reviewers"]}, "lacks type"),
    ([], "lacks protection_rules"),
    (None, "HTTP 403"),
]


@pytest.mark.parametrize(("answer", "said"), ANSWERS)
def test_environment(answer: Any, said: str, gh: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    """It is protected only where there is a reviewer; all else is refused, with what to do."""
    gh.answer({} if answer is None else {ASKED: json.dumps(answer)})
    protected = said.startswith("asks")
    assert environment.main(["gpu"]) == (0 if protected else 1)
    told = capsys.readouterr()
    assert said in (told.out if protected else told.err)
    assert protected or "give gpu Required reviewers, then set the label again (docs/runners.md)" in told.err
    assert [words for words, _ in gh.asked()] == [["api", ASKED]]
