"""The six commits as two H200s timed them: the review and the site say of times what they say of counted numbers.

The results were measured once on each and are kept (`python -m tests.six_commits_timed`, 2026-11-21, driver 580.159.04,
nvcc 13.0.88); a repository of the same six commits stands in for the one that they were measured in.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import six_commits
from tests.repository import Repository
from tests.six_commits_timed import TIMED_VALUES

KEPT = Path(__file__).parents[2] / "data" / "six-commits-h200"

TILE = "transpose_read_write_coalesced"
TRANSPOSES = [
    f"{benchmark}({TILE}, {matrix}, float32, -Xptxas -O3)"
    for benchmark, matrix in (
        ("IsolatedTranspose.time_isolated", "1024x1024"),
        ("Transpose.time_back_to_back", "4096x4096"),
        ("TransposeInL2.time_back_to_back", "1024x1024"),
    )
]
TRANSPOSES = [f"time_transpose.{name}" for name in TRANSPOSES]
COPIES = [
    f"time_copy.OffsetCopy.time_back_to_back(0, 67108864, float32, -Xptxas {flag})" for flag in ("-O3", "-dlcm=cg")
]

#: What the review of each commit with the one before says: exit code, what is SLOW, what is FAST.
REVIEWS: dict[str, tuple[int, list[str], list[str]]] = {
    "another text": (0, [], []),
    "no padding": (1, TRANSPOSES, []),
    "misaligned": (1, COPIES, []),
    "a third text": (0, [], []),
    "aligned again": (0, [], COPIES),
}


def _control(configuration: str) -> str:
    """The same configuration's time in copies of the same bytes."""
    name, _, params = configuration.partition("(")
    return f"track_control.{name.split('.')[1]}.track_copy_ratio({params}"


def _on_site(configurations: list[str], commit: str) -> dict[str, str]:
    return dict.fromkeys([*configurations, *map(_control, configurations)], commit)


@pytest.fixture(scope="module", params=["af68bbb3", "b72516b2"])
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Repository, dict[str, str]]:
    """The six commits with what a GPU measured as their results; message -> hash, oldest first."""
    kept = KEPT / request.param
    repository, commits = six_commits.build(tmp_path_factory.mktemp("six_commits_timed"), TIMED_VALUES)
    measured = json.loads((kept / "commits.json").read_text(encoding="utf-8"))
    assert list(measured) == list(commits), "the fixture is of other commits: python -m tests.six_commits_timed"
    for source in (path for path in (kept / "results").rglob("*") if path.is_file()):
        target = repository.path / source.relative_to(kept)
        text = source.read_text(encoding="utf-8")
        for message, commit in measured.items():
            text = text.replace(commit, commits[message])
            target = target.with_name(target.name.replace(commit[:8], commits[message][:8]))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return repository, commits


@pytest.mark.parametrize("message", REVIEWS)
def test_review(message: str, built: tuple[Repository, dict[str, str]]) -> None:
    """Each commit is compared with the one before: exactly what was made slower or faster is told."""
    repository, commits = built
    exit_code, slow, fast = REVIEWS[message]
    found = six_commits.reviewed(repository, six_commits.before(commits, message), commits[message])
    assert found == (exit_code, sorted(slow), sorted(fast))


@pytest.mark.parametrize("built", ["af68bbb3"], indirect=True)
def test_site(built: tuple[Repository, dict[str, str]]) -> None:
    """The list of regressions and the feed name the commits: what is fixed has left them."""
    repository, commits = built
    slower = _on_site(TRANSPOSES, commits["no padding"])
    both = slower | _on_site(COPIES, commits["misaligned"])
    assert six_commits.published(repository, commits["a third text"]) == both
    assert six_commits.published(repository, commits["aligned again"]) == slower
