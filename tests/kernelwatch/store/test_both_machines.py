"""What needs no GPU is the same with one: the stored results of both machines, for the commits that both measured."""

from __future__ import annotations

from typing import Any

import pytest

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
