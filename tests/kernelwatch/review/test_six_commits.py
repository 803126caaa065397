"""Six commits, two of them regressions and one the fix of the second: the review and the site name exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import record
from tests import six_commits
from tests.repository import Repository

TILE = "(transpose_read_write_coalesced, float32, -Xptxas -O3"
COPIES = [
    f"track_counted.OffsetCopy.track_{what}(float32, 0, -Xptxas -O3)"
    for what in (
        *("instructions", "load_lines", "load_sectors", "store_lines", "store_sectors"),
        *("sectors_loaded", "sectors_stored"),
    )
]
CONFLICTS = [
    f"track_counted.Transpose.track_{what}{TILE})"
    for what in ("bank_conflicts", "instructions", "merged_wavefronts", "wavefronts")
]
TILE_BYTES = f"track_compiled.Compiled.track_shared_bytes{TILE}, sm_90)"

BENCHMARKS = "ARGS=--bench track_counted --bench track_compiled --bench DeviceCopy"

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
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, dict[str, str]]:
    """The six commits, measured; message -> hash, oldest first."""
    repository, commits = six_commits.build(tmp_path_factory.mktemp("six_commits"))
    run = repository.make("history", BENCHMARKS)
    (repository.path.parent / "said").write_text(run.stdout + run.stderr, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr
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
    assert "Largest: transpose_read_write_coalesced more merged wavefronts at float32 -O3 (" in review.stdout


@pytest.mark.parametrize("newest", SITES)
def test_site(newest: str, repository: Repository, commits: dict[str, str]) -> None:
    """The list of regressions and the feed, as published when a commit was the newest."""
    expected = {name: commits[message] for name, message in SITES[newest].items()}
    assert six_commits.published(repository, commits[newest]) == expected


def test_a_night_without_new_commits(repository: Repository) -> None:
    """It leaves nothing behind."""
    before = repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert (repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)) == before


def test_record(repository: Repository, commits: dict[str, str]) -> None:
    """A line a commit says since when it was measured, what was skipped for want of a device, and why."""
    runs = _runs(repository)
    stored = [json.loads(path.read_text()) for path in _machine(repository).glob("????????-*.json")]
    started = stored[0]["result_columns"].index("started_at")
    assert sorted(run["commits"] for run in runs) == sorted([commit] for commit in commits.values())
    assert {commit: names for run in runs for commit, names in run["began"].items()} == {
        each["commit_hash"]: {name: row[started] for name, row in each["results"].items()} for each in stored
    }
    if "gpu" in runs[0]:
        return
    assert "No GPU here: the time_* benchmarks are skipped" in (repository.path.parent / "said").read_text()
    copies = "time_copy.DeviceCopy.time_back_to_back"
    for run in runs:
        assert {(each["benchmark"], each["configurations"]) for each in run["skipped"]} == {(copies, 1)}
    assert all(math.isnan(value) for each in stored for value in each["results"][copies][0])


def _machine(repository: Repository) -> Path:
    (file,) = repository.results.glob("*/machine.json")
    return file.parent


def _runs(repository: Repository) -> list[dict[str, Any]]:
    return record.read(repository.results, _machine(repository).name)
