"""What needs no GPU is the same with one: the stored results of both machines, for the commits that both measured."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwatch.kernel import Launch
from kernelwatch.project import ROOT
from kernelwatch.store import record
from kernelwatch.store.results import EXACT, History, kind

MACHINES = "nvidia-h200", "no-gpu-x86_64"

HISTORIES = [History(machine) for machine in MACHINES]


def _exact(history: History, commit: str) -> dict[str, float]:
    """All counted and compiled numbers of a commit, by configuration."""
    results: Any = history.commit(commit)
    names = [name for name in history.benchmarks("track") if kind(name) in EXACT.values()]
    points = ((name, point) for name in names for point in history.points(results, name))
    return {point.name(name): point.value for name, point in points if point.value is not None}


#: Some were timed only on the machine with a GPU.
COMMITS = [
    commit
    for commit in sorted(set(HISTORIES[0].commits()) & set(HISTORIES[1].commits()))
    if _exact(HISTORIES[0], commit)
]


@pytest.mark.parametrize("commit", COMMITS)
def test_same_numbers(commit: str) -> None:
    """Counted and compiled, to the last digit."""
    one, other = (_exact(history, commit) for history in HISTORIES)
    shared = one.keys() & other.keys()
    assert len(shared) > 1500
    assert {name: one[name] for name in shared} == {name: other[name] for name in shared}


def _cubins(machine: str) -> dict[tuple[str, str], dict[str, str]]:
    """Commit and architecture -> hashes. Of its own file: `Cubins` would fill what one lacks from another."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for entry in record.read(ROOT / "results", machine, record.CUBINS_FILE):
        cubins = {Launch.parse(name).machine_code: digest for name, digest in entry["cubins"].items()}
        found.setdefault((entry["commit"], entry["arch"]), {}).update(cubins)
    return found


def test_same_machine_code() -> None:
    """A toolkit's nvcc and PyPI's, of the same release, make the same cubins; an H100 ran what H200s did."""
    one, other = ({key: each for key, each in _cubins(machine).items() if key[0] in COMMITS} for machine in MACHINES)
    assert {commit for commit, _ in one} == set(COMMITS)
    assert one == other
    known, found = _cubins(MACHINES[0]), _cubins("nvidia-h100-80gb-hbm3")
    shared = {key: found[key] for key in found.keys() & known.keys()}
    assert {commit[:7] for commit, _ in shared} >= {"952ced2", "926c240", "f22cf79"}
    assert all(cubins and cubins.items() <= known[key].items() for key, cubins in shared.items())
