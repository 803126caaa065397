"""A run that is killed while it measures: the next one measures on, and only what was running is measured again."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import jsonl
from kernelwatch.store.journal import Answer, Begun, Journal, conditions
from tests.faults import measurer
from tests.faults.processes import start

#: Each takes a run of its own.
KILLS = 10
RECORD = f"{measurer.MACHINE}/runs.jsonl"


def _journals(folder: Path) -> list[Path]:
    return list(folder.rglob("*.journal"))


def _is_whole(folder: Path) -> bool:
    """Whether the commit has all samples of both rounds, and no journal."""
    document = json.loads((folder / measurer.RESULT).read_text())
    place = document["result_columns"].index("samples")
    samples = [each for row in document["results"].values() for each in row[place]]
    return samples == [[1.0, 2.0, 4.0] * 2] * (measurer.PROCESSES // 2) and not _journals(folder)


def _ended(folder: Path, *args: Any) -> int:
    process = start(measurer.run, folder, *args)
    process.join()
    return int(process.exitcode)


def test_killed_at_random(tmp_path: Path) -> None:
    """However often it is killed, a commit costs one configuration more a kill; then it is whole."""
    chance, kills, commits = random.Random(18), 0, 0
    while kills < KILLS:
        folder = tmp_path / str(commits)
        folder.mkdir()
        before, exitcode = kills, None
        while exitcode != 0:
            known, process = measurer.measured(folder), start(measurer.run, folder, 0.002)
            while measurer.measured(folder) == known and process.is_alive():
                time.sleep(0.002)
            process.join(chance.uniform(0, 0.03))
            process.kill()
            process.join()
            exitcode = process.exitcode
            assert exitcode in (0, -signal.SIGKILL)
            kills += exitcode != 0
        assert _is_whole(folder)
        found = measurer.measured(folder)
        assert len(found) == measurer.PROCESSES // 2
        assert measurer.PROCESSES <= found.total() <= measurer.PROCESSES + kills - before
        commits += 1


@pytest.mark.parametrize(("step", "turn"), [(step, turn) for step, turns in measurer.STEPS for turn in turns])
def test_killed_at_a_step(step: str, turn: int, tmp_path: Path) -> None:
    """A run that skips commits with results goes on with this one, and its record says so."""
    assert _ended(tmp_path, 0.0, step, turn) == -signal.SIGKILL
    assert _journals(tmp_path)
    is_lost = step == "before an answer is kept"
    kept = measurer.measured(tmp_path).total() - is_lost
    for _ in range(2):  # the second finds it through, and skips it
        assert _ended(tmp_path) == 0
        assert _is_whole(tmp_path)
        assert measurer.measured(tmp_path).total() == measurer.PROCESSES + is_lost
    (record,) = jsonl.read(tmp_path / RECORD)
    assert len(record["continued"]) == 1
    assert kept == {"as a configuration runs": turn, "before an answer is kept": turn}.get(step, measurer.PROCESSES)


def test_under_other_conditions(tmp_path: Path) -> None:
    """What was compiled with other flags is measured anew."""
    assert _ended(tmp_path, 0.0, "as a configuration runs", 5, "-lineinfo") == -signal.SIGKILL
    assert _ended(tmp_path) == 0
    assert measurer.measured(tmp_path).total() == 5 + measurer.PROCESSES
    assert _is_whole(tmp_path)


def _answers(journal: Journal) -> list[Answer]:
    return list(iter(lambda: journal.take("time_x-1", "{}"), None))


BEGUN, ANSWERS = Begun("2026-01-02T03:04:05+00:00", {"uuid": "u"}), [Answer("time_x-1", "{}", "é\n", n) for n in "12"]


def test_torn_anywhere(tmp_path: Path) -> None:
    """Of a journal that is cut at any byte, whole lines are taken; what is added then is read, too."""
    path = tmp_path / "journal"
    journal = Journal(path, BEGUN)
    for answer in ANSWERS:
        journal.add(answer)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        ends = [len(b"".join(content.splitlines(keepends=True)[:count])) for count in (2, 3)]
        known = [answer for answer, end in zip(ANSWERS, ends, strict=True) if size >= end - 1]
        journal = Journal(path, BEGUN)
        assert _answers(journal) == known
        journal.add(ANSWERS[1])
        assert _answers(Journal(path, BEGUN)) == [*known, ANSWERS[1]]


@pytest.mark.parametrize("other", [{"uuid": "v"}, {}, {"uuid": "u", "driver": "1"}])
def test_of_another_gpu(other: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it is taken, now or later, and one line says so."""
    path = tmp_path / "journal"
    Journal(path, BEGUN).add(ANSWERS[0])
    assert _answers(Journal(path, Begun("later", other))) == []
    assert len(caplog.messages) == 1
    assert _answers(Journal(path, Begun("later", other))) == []


#: What a run is measured by -> the same, another of it.
CONDITIONS: dict[str, Callable[[dict[str, Any], list[str], Path], object]] = {
    "GPU": lambda device, *_: device.update(uuid="v"),
    "driver": lambda device, *_: device.update(driver="2"),
    "commits in turns": lambda _, in_turns, __: in_turns.append("c"),
    "instrument": lambda *given: (given[2] / "benchmarks" / "one.py").write_text("2"),
}


@pytest.mark.parametrize("change", CONDITIONS.values(), ids=CONDITIONS)
def test_conditions(change: Callable[[dict[str, Any], list[str], Path], object], tmp_path: Path) -> None:
    """A journal is continued by a run that shares all of them; a warmer GPU is the same GPU."""
    device: dict[str, Any] = {"uuid": "u", "driver": "1", "temperature_c": 40}
    in_turns = ["a", "b"]
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "one.py").write_text("1")
    known = conditions(device, in_turns, tmp_path)
    assert conditions({**device, "temperature_c": 60}, in_turns, tmp_path) == known
    change(device, in_turns, tmp_path)
    assert conditions(device, in_turns, tmp_path) != known


def test_no_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A journal that cannot be written is told once, and the run goes on."""
    journal = Journal(tmp_path / "none" / "journal", BEGUN)
    for answer in ANSWERS:
        journal.add(answer)
    (told,) = caplog.messages
    assert "cannot be written (No such file or directory)" in told
