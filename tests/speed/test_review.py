"""Benchmarks of the review's speed, called as asv calls them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from speed.suite import review
from speed.suite.histories import MACHINES


class Help(review._History):
    command = ("--help",)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a history of two commits; return its folder. Environment and working folder are restored after the test."""
    monkeypatch.setattr(review, "_SIZES", (2,))
    for name in ("KERNELWATCH_ROOT", "KERNELWATCH_CACHE"):
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(tmp_path)
    return Help().setup_cache()


def test_setup_can_be_repeated(root: str) -> None:
    """`setup` may be called several times, as asv does: once before each sample."""
    for _ in range(2):
        Help().setup(root, 2)
    assert {path.parent.name for path in Path("results").glob("*/*-virtualenv-*.json")} == {*MACHINES}


def test_exit_code_2_may_be_a_verdict() -> None:
    Help()._check_code(2, "")


@pytest.mark.parametrize("run", [Help.run, Help.run_here])
def test_failed_command_has_no_time(run: Callable[[Help], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Help, "command", ("none",))
    with pytest.raises(RuntimeError, match="kernelwatch none returned 2"):
        run(Help())
