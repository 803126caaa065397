"""Reviews of six commits: two regressions, and the fix of the second.

Counted and compiled metrics are exact, so every machine gives the same result.
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
#: The same copy, shifted by one element: each warp accesses one more sector.
MISALIGNED = """    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread < size) {
        const long long index = thread + 1 < size ? thread + 1 : 0;
"""

BENCHMARKS = "ARGS=--bench track_counted --bench track_compiled"

FIRST = "as it is"

#: Commit after the first -> file, old text, new text.
CHANGES = {
    "another text": ("README.md", "# coalescing-watch", "# Another title"),
    "no padding": ("gpu_kernels/kernels/transpose.cu", "transpose_through_tile<1>", "transpose_through_tile<0>"),
    "misaligned": (COPY, ALIGNED, MISALIGNED),
    "a third text": ("README.md", "# Another title", "# A third title"),
    "aligned again": (COPY, MISALIGNED, ALIGNED),
}

#: Repository, and its commits from oldest to newest: message -> hash.
Built = tuple[Repository, dict[str, str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("six_commits")
    repository = Repository(folder, ("offset_copy", "transpose_read_write_coalesced"), SMALL_VALUES)
    commits = {FIRST: repository.commit(FIRST)}
    for message, change in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    run = repository.make("history", BENCHMARKS)
    assert run.returncode == 0, run.stdout + run.stderr
    return repository, commits


def test_reviews_of_neighbouring_commits(built: Built, capsys: pytest.CaptureFixture[str]) -> None:
    repository, commits = built
    text = ""
    for base, head in itertools.pairwise(commits):
        code = main([commits[base], commits[head], "--all"], repository.path)
        text += f"== {code}\n{capsys.readouterr().out}"
    (machine,) = repository.results.glob("*/machine.json")
    text = text.replace(machine.parent.name, "<machine>")
    shown, expected = golden("six-commits.txt", text, commits)
    assert shown == expected


def test_run_without_new_commits_changes_no_results(built: Built) -> None:
    repository, _ = built
    contents_before = contents(repository.results)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert contents(repository.results) == contents_before
