"""A run that is killed at any moment: every file loads, and no value that was stored before is lost."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest

from kernelwatch.store import jsonl, storing
from tests.faults import writer
from tests.faults.writer import CONTEXT, start


def _stored(folder: Path) -> set[int]:
    """The numbers that the record has, once every file was loaded, and the commit has them too."""
    for path in folder.rglob("*.json"):
        assert isinstance(json.loads(path.read_bytes()), dict), path
    recorded = {entry["number"] for entry in jsonl.read(folder / writer.MACHINE / writer.RECORD)}
    assert recorded <= set(writer.results(folder)._results.get(writer.BENCHMARK, []))
    return recorded


def test_killed_at_random(tmp_path: Path) -> None:
    """What was told as stored is there after each kill, and the next run goes on with it."""
    chance, told = random.Random(18), set[int]()
    for first in range(0, 20_000, 1000):
        here, there = CONTEXT.Pipe(duplex=False)
        process = start(writer.run, tmp_path, iter(range(first, first + 1000)), there)
        there.close()
        told.add(here.recv())
        process.join(chance.uniform(0, 0.05))
        process.kill()
        process.join()
        while here.poll():
            try:
                told.add(here.recv())
            except EOFError:
                break
        assert process.exitcode == -signal.SIGKILL
        assert told <= _stored(tmp_path)


@pytest.mark.parametrize("step", writer.STEPS)
def test_killed_within_a_write(step: str, tmp_path: Path) -> None:
    """The same where the process dies at a step of each file in turn; none but the number under way is lost."""
    writer.store(tmp_path, -1)
    for turn in range(writer.FILES):
        process = start(writer.run_to, tmp_path, turn, step, turn)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert -1 in _stored(tmp_path)
    storing.mend(tmp_path)
    assert not list(tmp_path.rglob("*.unfinished"))
