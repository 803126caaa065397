"""A run that is killed while it measures: it loses the commit under way, and the next one measures it whole."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import jsonl, samples
from tests.faults import measurer
from tests.faults.processes import start


def _is_whole(folder: Path) -> bool:
    """Whether the commit has all samples of both rounds."""
    document = samples.read(folder / measurer.RESULT)
    place = document["result_columns"].index("samples")
    found = [each for row in document["results"].values() for each in row[place]]
    return found == [[1.0, 2.0, 4.0] * 2] * (measurer.PROCESSES // 2)


def _ended(folder: Path, *args: Any) -> int:
    process = start(measurer.run, folder, *args)
    process.join()
    return int(process.exitcode)


@pytest.mark.parametrize(("step", "turn"), [(step, turn) for step, turns in measurer.STEPS for turn in turns])
def test_killed_at_a_step(step: str, turn: int, tmp_path: Path) -> None:
    """Nothing of the commit is stored then; a run that skips commits with results measures this one, once."""
    assert _ended(tmp_path, 0.0, step, turn) == -signal.SIGKILL
    assert not (tmp_path / measurer.RESULT).exists()
    lost = measurer.measured(tmp_path).total()
    for _ in range(2):  # the second finds it stored, and skips it
        assert _ended(tmp_path) == 0
        assert _is_whole(tmp_path)
        assert measurer.measured(tmp_path).total() == lost + measurer.PROCESSES
    (record,) = jsonl.read(tmp_path / measurer.MACHINE / "runs.jsonl")
    assert record["commits"] == [measurer.COMMIT]
