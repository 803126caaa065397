"""Six commits, two of them regressions and one the fix of the second: the review and the site name exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import six_commits
from tests.repository import Repository

TILE = "(transpose_read_write_coalesced, float32, -Xptxas -O3"
COPIES = [
    f"track_counted.OffsetCopy.track_{what}(float32, 0, -Xptxas -O3)"
    for what in ("instructions", "load_lines", "load_sectors", "store_lines", "store_sectors")
]
CONFLICTS = [f"track_counted.Transpose.track_{what}{TILE})" for what in ("bank_conflicts", "instructions")]
TILE_BYTES = f"track_compiled.Compiled.track_shared_bytes{TILE}, sm_90)"

#: What the review of each commit with the one before says: exit code, what is SLOW, what is FAST.
REVIEWS: dict[str, tuple[int, list[str], list[str]]] = {
    "another text": (0, [], []),
    "no padding": (1, CONFLICTS, [TILE_BYTES]),
    "misaligned": (1, COPIES, []),
    "a third text": (0, [], []),
    "aligned again": (0, [], COPIES),
}

#: The newest commit of a published site -> the regressions that the site must name: configuration -> commit.
#: asv lists what has not recovered: what is fixed leaves the list.
SITES = {
    "another text": {},
    "a third text": {**dict.fromkeys(CONFLICTS, "no padding"), **dict.fromkeys(COPIES, "misaligned")},
    "aligned again": dict.fromkeys(CONFLICTS, "no padding"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> tuple[Repository, dict[str, str]]:
    """The six commits, measured; message -> hash, oldest first."""
    repository, commits = six_commits.build(tmp_path_factory.mktemp("six_commits"), environments=environments)
    run = repository.make("history", "ARGS=--bench track_counted --bench track_compiled")
    assert run.returncode == 0, run.stdout + run.stderr
    repository.share_environments()
    return repository, commits


@pytest.fixture
def repository(built: tuple[Repository, dict[str, str]]) -> Repository:
    """The repository."""
    return built[0]


@pytest.fixture
def commits(built: tuple[Repository, dict[str, str]]) -> dict[str, str]:
    """Message -> hash, oldest first."""
    return built[1]


@pytest.mark.parametrize("message", REVIEWS)
def test_review(message: str, repository: Repository, commits: dict[str, str]) -> None:
    """Each commit is compared with the one before: what became worse, what better, and the exit code."""
    exit_code, slow, fast = REVIEWS[message]
    found = six_commits.reviewed(repository, six_commits.before(commits, message), commits[message])
    assert found == (exit_code, sorted(slow), sorted(fast))


def test_command(repository: Repository, commits: dict[str, str]) -> None:
    """The command, which ends with the review's exit code."""
    sides = (f"BASE={commits['another text']}", f"HEAD={commits['no padding']}")
    review = repository.make("compare", *sides)
    assert review.returncode == 1, review.stdout + review.stderr  # of make, whatever its command ends with
    assert not review.stderr
    assert review.stdout.startswith("SLOWER ")
    assert "bank conflicts 0 -> 15.3" in review.stdout


@pytest.mark.parametrize("newest", SITES)
def test_site(newest: str, repository: Repository, commits: dict[str, str]) -> None:
    """The list of regressions and the feed, as published when a commit was the newest."""
    expected = {name: commits[message] for name, message in SITES[newest].items()}
    assert six_commits.published(repository, commits[newest]) == expected


def test_measured_again(repository: Repository, commits: dict[str, str]) -> None:
    """A night without new commits leaves nothing behind; two commits are measured in turn, round by round."""
    before = repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)
    idle = repository.make("history", "ARGS=--bench track_counted --bench track_compiled")
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert (repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)) == before

    base, head = commits["misaligned"], commits["aligned again"]
    measure = repository.make("measure", f"BASE={base}", f"HEAD={head}", "ARGS=--bench DeviceCopy")
    assert measure.returncode == 0, measure.stdout + measure.stderr
    rounds = re.findall(r"commit ([0-9a-f]{8})\S* .*\(round (\d)/2\)", measure.stdout)
    assert sorted(rounds) == sorted((commit[:8], turn) for commit in (base, head) for turn in "12")
    assert [turn for _, turn in rounds] == ["1", "1", "2", "2"]


def _runs(repository: Repository) -> str:
    (file,) = repository.results.glob("*/runs.jsonl")
    return file.read_text(encoding="utf-8")
