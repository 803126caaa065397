"""Two runs into one folder of results: the second says so and waits, and both runs' results are there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from asv.util import UserError

from kernelwatch.store import folders
from tests.faults import writer
from tests.faults.writer import start


def _until_held(folder: Path) -> None:
    """Wait for a run to have begun."""
    ends = time.monotonic() + 20
    while not (folder / writer.BEGAN).exists():
        assert time.monotonic() < ends, "no run began"
        time.sleep(0.01)


def _two(folder: Path, said: Path, seconds: float) -> list[Any]:
    """Begin a run, and then another one that takes no time."""
    first = start(writer.run_locked, folder, 1, seconds, said / "1")
    _until_held(folder)
    return [first, start(writer.run_locked, folder, 2, 0, said / "2")]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Results, and what the runs say."""
    said = tmp_path / "said"
    said.mkdir()
    return tmp_path / "results", said


def test_the_second_waits(places: tuple[Path, Path]) -> None:
    """One message; then both have a value of the commit."""
    results, said = places
    runs = _two(results, said, 60)
    ends = time.monotonic() + 60
    while "in use" not in ((said / "2").read_text() if (said / "2").exists() else ""):
        assert time.monotonic() < ends, "the second run does not wait"
        time.sleep(0.01)
    (results / writer.RELEASE).touch()
    for run in runs:
        run.join()
        assert run.exitcode == 0, [path.read_text() for path in said.iterdir()]
    assert writer.numbers(results) == {1, 2}
    waited = [[line for line in (said / name).read_text().splitlines() if "in use" in line] for name in "12"]
    assert [len(lines) for lines in waited] == [0, 1]
    assert f"{results} is in use by another run; waiting" in waited[1][0]


def test_who_waits_for_a_run_that_is_killed_goes_on(places: tuple[Path, Path]) -> None:
    """At once, since the system frees the lock."""
    results, said = places
    first, second = _two(results, said, 600)
    first.kill()
    first.join()
    second.join(20)
    assert second.exitcode == 0
    assert writer.numbers(results) == {2}


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    """One line, before anything is measured."""
    (tmp_path / "results").touch()
    with pytest.raises(UserError, match="results cannot be written: File exists"), folders.alone(tmp_path / "results"):
        pytest.fail("nobody has that folder")
