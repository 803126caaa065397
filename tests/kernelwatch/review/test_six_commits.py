"""Six commits, two of them regressions and one the fix of the second: the review names exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import json

import pytest

from kernelwatch.show.commands import compare as main
from tests.repository import SMALL_VALUES, Repository
from tests.stored import contents

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


def test_a_night_without_new_commits(built: Built) -> None:
    """It leaves nothing behind."""
    repository, _ = built
    before = contents(repository.results)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert contents(repository.results) == before
