"""Six commits, two of them regressions and one the fix of the second: the review names exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import itertools

import pytest

from kernelwatch.cli.compare import compare as main
from tests.golden import golden
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

BENCHMARKS = "ARGS=--bench track_counted --bench track_compiled"

FIRST = "as it is"

#: What each commit after the first does: the file, the old text and the new text.
CHANGES = {
    "another text": ("README.md", "# coalescing-watch", "# Another title"),
    "no padding": ("gpu_kernels/kernels/transpose.cu", "transpose_through_tile<1>", "transpose_through_tile<0>"),
    "misaligned": (COPY, ALIGNED, MISALIGNED),
    "a third text": ("README.md", "# Another title", "# A third title"),
    "aligned again": (COPY, MISALIGNED, ALIGNED),
}

#: The repository, and its commits: message -> hash, oldest first.
Built = tuple[Repository, dict[str, str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the six commits, measured."""
    folder = tmp_path_factory.mktemp("six_commits")
    repository = Repository(folder, ("offset_copy", "transpose_read_write_coalesced"), SMALL_VALUES)
    commits = {FIRST: repository.commit(FIRST)}
    for message, change in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    run = repository.make("history", BENCHMARKS)
    assert run.returncode == 0, run.stdout + run.stderr
    return repository, commits


def test_reviews(built: Built, capsys: pytest.CaptureFixture[str]) -> None:
    """Each commit is compared with the one before: what became worse, what better, and the exit code."""
    repository, commits = built
    text = ""
    for base, head in itertools.pairwise(commits):
        code = main([commits[base], commits[head], "--all"], repository.path)
        text += f"== {code}\n{capsys.readouterr().out}"
    (machine,) = repository.results.glob("*/machine.json")
    text = text.replace(machine.parent.name, "<machine>")
    shown, expected = golden("six-commits.txt", text, commits)
    assert shown == expected


def test_a_night_without_new_commits(built: Built) -> None:
    """It leaves nothing behind."""
    repository, _ = built
    contents_before = contents(repository.results)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert contents(repository.results) == contents_before
