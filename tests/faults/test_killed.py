"""A run that is killed at any moment: every file loads, and no value that was stored before is lost."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import jsonl, storing
from tests.faults import writer
from tests.faults.processes import CONTEXT, start

#: So many kills of each kind; `make faults` asks for more.
KILLS = int(os.environ.get("COALESCING_WATCH_KILLS", "20"))


def _stored(folder: Path) -> list[int]:
    """The numbers that the commit has, once every file was loaded, and the record holds the same but for the last."""
    for path in folder.rglob("*.json"):
        assert isinstance(json.loads(path.read_bytes()), dict), path
    numbers: list[int] = writer.results(folder)._results.get(writer.BENCHMARK, [])
    recorded = [entry["number"] for entry in jsonl.read(folder / writer.MACHINE / writer.RECORD)]
    assert set(recorded) <= set(numbers)
    return recorded


def test_killed_at_random(tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    """What was told as stored is there after each kill, and the next run goes on with it."""
    chance, told = random.Random(18), set[int]()
    for first in range(0, KILLS * 1000, 1000):
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
        assert told <= set(_stored(tmp_path))
    record_property("attempts", KILLS)
    _print(tmp_path, KILLS, len(told))


@pytest.mark.parametrize("step", [*writer.STEPS, "half written"])
def test_killed_within_a_write(step: str, tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    """The same where the process dies at a step of each file in turn; none but the number under way is lost."""
    writer.store(tmp_path, -1)
    kills = -(-KILLS // len(writer.STEPS) // writer.FILES) * writer.FILES
    for number in range(kills):
        words = (number, step, number % writer.FILES) if step in writer.STEPS else (number,)
        process = start(writer.run_to if step in writer.STEPS else writer.run_within, tmp_path, *words)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert -1 in _stored(tmp_path)
    record_property("attempts", kills)
    _print(tmp_path, kills, 1)
    storing.mend(tmp_path)
    assert not list(tmp_path.rglob("*.unfinished"))


def test_killed_within_an_acceptance(tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    """Once a run or an acceptance has mended the folder, all of its files are accepted or none, and nothing is left."""
    before = {tmp_path / "list.jsonl": b"1", tmp_path / "m" / "runs.jsonl": b"1"}
    after = {tmp_path / "list.jsonl": b"2", tmp_path / "m" / "runs.jsonl": b"2", tmp_path / "m" / "new.jsonl": b"2"}
    (tmp_path / "m").mkdir()
    outcomes = []
    for step in writer.OF_SEVERAL:
        for turn in itertools.count():
            for path in after:
                path.unlink(missing_ok=True)
            for path, content in before.items():
                path.write_bytes(content)
            process = start(writer.accept_to, after, step, turn)
            process.join()
            storing.mend(tmp_path)
            found = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
            if process.exitcode == 0:
                assert found == after
                break
            assert process.exitcode == -signal.SIGKILL
            assert found in (before, after), (step, turn)
            outcomes.append(found == after)
    assert {True, False} == set(outcomes)
    record_property("attempts", len(outcomes))


def _print(folder: Path, kills: int, told: int) -> None:
    """The figures of `make faults`."""
    files = sum(1 for _ in folder.rglob("*.json"))
    print(f"{kills} kills: {told} values told as stored, all found; {files} files, all load")
