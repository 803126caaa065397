"""Six commits, two of them regressions and one the fix of the second: the review and the site name exactly those.

Only counted and compiled metrics are taken, so the numbers are exact and the test is the same on any machine.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.repository import SMALL_AXES, Repository

AXES = {
    **SMALL_AXES,
    "KERNELS": ["offset_copy", "transpose_read_write_coalesced"],
    "TRANSPOSES": ["transpose_read_write_coalesced"],
}

COPY = "gpu_kernels/kernels/offset_copy.cu"
ALIGNED = """    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
"""
#: The same elements, but each warp begins one later: the output is right, and every warp reaches into another sector.
MISALIGNED = """    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread < size) {
        const long long index = thread + 1 < size ? thread + 1 : 0;
"""

#: What each commit after the first does: its message, and the file, the old text and the new text.
CHANGES = {
    "another text": ("README.md", "# coalescing-watch", "# Another title"),
    "no padding": ("gpu_kernels/kernels/transpose.cu", "transpose_through_tile<1>", "transpose_through_tile<0>"),
    "misaligned": (COPY, ALIGNED, MISALIGNED),
    "a third text": ("README.md", "# Another title", "# A third title"),
    "aligned again": (COPY, MISALIGNED, ALIGNED),
}
FIRST = "as it is"

TILE = "(transpose_read_write_coalesced, float32, -Xptxas -O3"
COPIES = [
    f"track_counted.OffsetCopy.track_{what}(float32, 0, -Xptxas -O3)"
    for what in ("instructions", "load_sectors", "store_sectors")
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
    "no padding": dict.fromkeys(CONFLICTS, "no padding"),
    "a third text": {**dict.fromkeys(CONFLICTS, "no padding"), **dict.fromkeys(COPIES, "misaligned")},
    "aligned again": dict.fromkeys(CONFLICTS, "no padding"),
}


@pytest.fixture(scope="module")
def commits() -> dict[str, str]:
    """Message -> hash, oldest first; filled by `repository`."""
    return {}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, commits: dict[str, str]) -> Repository:
    """The six commits, measured."""
    repository = Repository(tmp_path_factory.mktemp("six_commits"), AXES)
    commits[FIRST] = repository.commit(FIRST)
    for message, change in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    run = repository.make("history", "ARGS=--bench track_")
    assert run.returncode == 0, run.stdout + run.stderr
    return repository


@pytest.mark.parametrize("message", REVIEWS)
def test_review(message: str, repository: Repository, commits: dict[str, str]) -> None:
    """Each commit is compared with the one before: what became worse, what better, and the exit code."""
    base = list(commits)[list(commits).index(message) - 1]
    review = repository.python("report.compare", commits[base], commits[message], "--format", "json")
    document = json.loads(review.stdout)
    found = {
        verdict: sorted(row["configuration"] for row in document["rows"] if row["verdict"] == verdict)
        for verdict in ("SLOW", "FAST", "UNDECIDED")
    }
    exit_code, slow, fast = REVIEWS[message]
    assert found == {"SLOW": sorted(slow), "FAST": sorted(fast), "UNDECIDED": []}
    assert (review.returncode, document["exit_code"]) == (exit_code, exit_code), review.stderr
    assert not document["broken"]


@pytest.mark.parametrize("newest", SITES)
def test_site(newest: str, repository: Repository, commits: dict[str, str]) -> None:
    """The list of regressions and the feed, as published when a commit was the newest."""
    publish = repository.asv("publish", commits[newest])
    assert publish.returncode == 0, publish.stdout + publish.stderr
    expected = {name: commits[message] for name, message in SITES[newest].items()}
    assert _listed(repository) == expected
    assert _fed(repository) == {(name.partition("(")[0], commit) for name, commit in expected.items()}


def test_results_are_accepted_elsewhere(repository: Repository, tmp_path: Path) -> None:
    """What was measured here is taken, to the byte, where the machine is known."""
    incoming = repository.path / "results"
    (machine,) = (path for path in incoming.iterdir() if path.is_dir())
    stored = tmp_path / machine.name
    stored.mkdir()
    shutil.copy(machine / "machine.json", stored)
    words = (str(incoming), str(tmp_path), "--machine", machine.name, "--commits", "main", "--ancestors", "--new-suite")
    taken = repository.python("runner.accept", *words)
    assert taken.returncode == 0, taken.stderr
    assert {path.name: path.read_bytes() for path in stored.iterdir()} == {
        path.name: path.read_bytes() for path in machine.iterdir()
    }


def test_measured_again(repository: Repository, commits: dict[str, str]) -> None:
    """A night without new commits leaves nothing behind; two commits are measured in turn, round by round."""
    before = repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)
    idle = repository.make("history", "ARGS=--bench track_")
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert (repository.git("status", "--porcelain", "--untracked-files=all"), _runs(repository)) == before

    base, head = commits["misaligned"], commits["aligned again"]
    measure = repository.make("measure", f"BASE={base}", f"HEAD={head}", "ARGS=--bench DeviceCopy")
    assert measure.returncode == 0, measure.stdout + measure.stderr
    rounds = re.findall(r"commit ([0-9a-f]{8})\S* .*\(round (\d)/2\)", measure.stdout)
    assert sorted(rounds) == sorted((commit[:8], turn) for commit in (base, head) for turn in "12")
    assert [turn for _, turn in rounds] == ["1", "1", "2", "2"]


def _runs(repository: Repository) -> str:
    (file,) = repository.path.glob("results/*/runs.jsonl")
    return file.read_text(encoding="utf-8")


def _listed(repository: Repository) -> dict[str, str]:
    """Configuration -> commit, from regressions.json and the site's numbers of commits."""
    html = repository.path / "html"
    hashes = json.loads((html / "index.json").read_text(encoding="utf-8"))["revision_to_hash"]
    found: dict[str, str] = {}
    entries: list[Any] = json.loads((html / "regressions.json").read_text(encoding="utf-8"))["regressions"]
    for name, _, _, _, _, _, jumps in entries:
        ((before, after, _, _),) = jumps
        assert before is None, "one commit, not a range of them"
        found[name.replace("'", "")] = hashes[str(after)]
    return found


def _fed(repository: Repository) -> set[tuple[str, str]]:
    """(benchmark, commit) of the feed's entries, from their links."""
    feed = (repository.path / "html" / "regressions.xml").read_text(encoding="utf-8")
    return set(re.findall(r'<link href="index\.html#([\w.]+)\?[^"]*commits=([0-9a-f]{40})"', feed))
