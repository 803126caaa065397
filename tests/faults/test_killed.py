"""A run that is killed, finds no room or meets another one: every file loads, and no value that was stored is lost."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from asv.util import UserError

from kernelwatch.store import folders
from ptxcount.whole import UNFINISHED
from tests.faults import writer
from tests.faults.writer import start


def _stored(folder: Path) -> set[int]:
    """The numbers that the record has, once every file was loaded, and the commit has them too."""
    for path in folder.rglob("*.json"):
        assert isinstance(json.loads(path.read_bytes()), dict), path
    (path,) = (folder / writer.MACHINE).glob(f"*.{writer.RECORD}")
    recorded = {entry["number"] for entry in map(json.loads, path.read_text().splitlines())}
    assert recorded <= writer.numbers(folder)
    return recorded


@pytest.mark.parametrize("step", writer.STEPS)
def test_killed_within_a_write(step: str, tmp_path: Path) -> None:
    """The process dies at a step of each file in turn; none but the number under way is lost."""
    writer.store(tmp_path, -1)
    for turn in range(writer.FILES):
        process = start(writer.run_to, tmp_path, turn, step, turn)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert -1 in _stored(tmp_path)
    with folders.alone(tmp_path):
        pass
    assert not list(tmp_path.rglob("*.unfinished"))


@pytest.mark.parametrize(("left", "is_enough"), [*((size, False) for size in range(0, 20_000, 4985)), (200_000, True)])
def test_no_room(left: int, is_enough: bool, tmp_path: Path) -> None:
    """What a run had stored stays, and the next one adds to it; with enough room, the run stores all."""
    writer.store(tmp_path, 1)
    process = start(writer.run_in_room, tmp_path, 2, left)
    process.join()
    assert (process.exitcode == 0) == is_enough
    assert _stored(tmp_path) == ({1, 2} if is_enough else {1})
    assert not list(tmp_path.rglob(f"*{UNFINISHED}"))
    writer.store(tmp_path, 3)
    assert 3 in _stored(tmp_path)


ENTRIES: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "µs\n", "samples": []}, {}]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """One line each, and none twice; a line that has no end stays one of its own; no other file is left."""
    path = tmp_path / "kept.jsonl"
    path.write_text("nan,")
    for entry in [*ENTRIES, *ENTRIES]:
        folders.append(path, entry)
    first, *others = path.read_text().splitlines()
    assert (first, [*map(json.loads, others)]) == ("nan,", ENTRIES)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("entries", [[{"n": 1}, {"n": {2}}], [{"n": {1}}]], ids=["the second", "the first"])
def test_what_cannot_be_written_is_written_in_no_part(entries: list[dict[str, object]], tmp_path: Path) -> None:
    """All entries or none, and no other file is left."""
    path = tmp_path / "runs.jsonl"
    folders.append(path, {"n": 0})
    with pytest.raises(TypeError):
        folders.append(path, *entries)
    assert json.loads(path.read_text()) == {"n": 0}
    assert list(tmp_path.iterdir()) == [path]


def _until(path: Path, text: str = "") -> None:
    """Wait until a file holds a text."""
    ends = time.monotonic() + 60
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < ends, path
        time.sleep(0.01)


def _two(folder: Path, said: Path, seconds: float) -> list[Any]:
    """Begin a run, and then another one that takes no time."""
    first = start(writer.run_locked, folder, 1, seconds, said / "1")
    _until(folder / writer.BEGAN)
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
    _until(said / "2", "in use")
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
