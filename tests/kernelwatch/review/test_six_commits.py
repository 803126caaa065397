"""Six commits, two of them regressions and one the fix of the second: the review names exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.show.commands import compare as main
from kernelwatch.store import record
from tests.repository import SMALL_VALUES, Repository

COPY = "gpu_kernels/kernels/offset_copy.cu"
ALIGNED = """    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
"""
#: The same elements, but each warp begins one later: the output is right, and every warp reaches into another sector.
MISALIGNED = """    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread < size) {
        const long long index = thread + 1 < size ? thread + 1 : 0;
"""

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

FIRST = "as it is"

#: What each commit after the first does: its message; the file, the old text and the new text; and what the review of
#: it with the one before says: exit code, what is SLOWER or rose, what is FASTER.
CHANGES: dict[str, tuple[tuple[str, str, str], tuple[int, list[str], list[str]]]] = {
    "another text": (("README.md", "# coalescing-watch", "# Another title"), (0, [], [])),
    "no padding": (
        ("gpu_kernels/kernels/transpose.cu", "transpose_through_tile<1>", "transpose_through_tile<0>"),
        (1, CONFLICTS, [TILE_BYTES]),
    ),
    "misaligned": ((COPY, ALIGNED, MISALIGNED), (1, COPIES, [])),
    "a third text": (("README.md", "# Another title", "# A third title"), (0, [], [])),
    "aligned again": ((COPY, MISALIGNED, ALIGNED), (0, [], COPIES)),
}

#: The repository, and its commits: message -> hash, oldest first.
Built = tuple[Repository, dict[str, str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The six commits, measured."""
    folder = tmp_path_factory.mktemp("six_commits")
    repository = Repository(folder, ("offset_copy", "transpose_read_write_coalesced"), SMALL_VALUES)
    commits = {FIRST: repository.commit(FIRST)}
    for message, (change, _) in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    run = repository.make("history", BENCHMARKS)
    (folder / "said").write_text(run.stdout + run.stderr, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr
    return repository, commits


@pytest.mark.parametrize("message", CHANGES)
def test_review(message: str, built: Built, capsys: pytest.CaptureFixture[str]) -> None:
    """Each commit is compared with the one before: what became worse, what better, and the exit code."""
    repository, commits = built
    base = commits[list(commits)[list(commits).index(message) - 1]]
    code = main([base, commits[message], "--format", "json"], repository.path)
    document = json.loads(capsys.readouterr().out)
    found: dict[str, list[str]] = {"SLOWER": [], "FASTER": [], "UNDECIDED": []}
    for row in document["rows"]:
        if row["verdict"] != "SAME":
            rose = row["verdict"] in ("NOTED", "TRADE")  # beside times that decide
            found["SLOWER" if rose else row["verdict"]].append(row["configuration"])
    assert (document["exit_code"], document["broken"], found["UNDECIDED"]) == (code, [], [])
    _, (expected, slower, faster) = CHANGES[message]
    assert (code, sorted(found["SLOWER"]), sorted(found["FASTER"])) == (expected, sorted(slower), sorted(faster))


def test_command(built: Built) -> None:
    """The command, which ends with the review's exit code."""
    repository, commits = built
    review = repository.make("compare", f"BASE={commits['another text']}", f"HEAD={commits['no padding']}")
    assert review.returncode == 1, review.stdout + review.stderr  # of make, whatever its command ends with
    assert not review.stderr
    assert review.stdout.startswith("SLOWER ")
    assert "Largest: transpose_read_write_coalesced more merged wavefronts at float32 -O3 (" in review.stdout


def test_a_night_without_new_commits(built: Built) -> None:
    """It leaves nothing behind."""
    repository, _ = built
    before = repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert (repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)) == before


def test_record(built: Built) -> None:
    """A line a commit says since when it was measured, what was skipped for want of a device, and why."""
    repository, commits = built
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
