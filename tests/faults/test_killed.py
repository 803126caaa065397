"""A run that is killed, or finds no room, at any moment: every file loads, and no value that was stored is lost."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

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
