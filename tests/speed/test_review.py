"""Benchmarks of reviews, called as asv calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from speed.suite import review
from speed.suite.histories import MACHINES


class Help(review._History):
    """A command that imports little."""

    command = ("--help",)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a history of two commits; the benchmark's variables and folder end with the test."""
    monkeypatch.setattr(review, "_SIZES", (2,))
    for name in ("KERNELWATCH_ROOT", "KERNELWATCH_CACHE"):
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(tmp_path)
    return Help().setup_cache()


def test_setup_again(root: str) -> None:
    """Call `setup` once more, as asv does before each sample but the first."""
    for _ in range(2):
        Help().setup(root, 2)
    assert {path.parent.name for path in Path("results").glob("*/*-virtualenv-*.json")} == {*MACHINES}


def test_undecided_is_a_verdict() -> None:
    """Exit code 2 without a text is a verdict."""
    Help()._check_code(2, "")


@pytest.mark.parametrize("run", [Help.run, Help.run_here])
def test_failed_command(run: Callable[[Help], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails has no time."""
    monkeypatch.setattr(Help, "command", ("none",))
    with pytest.raises(RuntimeError, match="kernelwatch none returned 2"):
        run(Help())
