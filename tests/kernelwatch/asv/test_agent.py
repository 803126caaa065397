"""The agent of a commit, what it writes ahead, and what is done in the background; no GPU."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import mortal
from kernelwatch.asv import agent, background, timed
from kernelwatch.asv.agent import Agent, WrittenAhead
from kernelwatch.instrument import exchange, jobs, messages
from kernelwatch.instrument.exchange import Reference
from kernelwatch.instrument.job import Outcome
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.project import ROOT
from tests import served

OUTCOME = Outcome(
    samples=(3.0, 4.0, 2.0), copies=(2.0, 2.5, 3.0), held_back=("hot",), stopped="limit", seconds={"end": 0.5}
)

#: A class of the suite, and the ratios of its times.
TIME = "time_copy.OffsetCopy.time_back_to_back"
RATIO = next(name for name, each in timed.CONTROLS.items() if each.timed is timed.CLASSES[TIME])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the measuring process is asked for; it answers with OUTCOME, or as an exception put in first says."""
    found: list[Any] = []

    def ask(address: str, describe: Any, *_: Any) -> Outcome:
        error = found.pop() if found and isinstance(found[-1], Exception) else None
        found.append(describe(served.READY).name)
        if error is not None:
            raise error
        return OUTCOME

    monkeypatch.setenv(exchange.ADDRESS, "socket")
    monkeypatch.setattr(exchange, "ask", ask)
    monkeypatch.setattr(WrittenAhead, "look_ahead", lambda *_: None)
    return found


def test_answers(asked: list[Any]) -> None:
    """A time is measured each time, its ratio is of what was measured, once; what a plan has measured comes first."""
    one = Agent(timed.CLASSES)
    one.kept[TIME, 7] = OUTCOME
    first, other = one.answer(TIME, 7), one.answer(TIME, 7)
    assert first.samples == other.samples == [3.0, 4.0, 2.0]
    assert [each["reason"] for each in messages.read(first.said, "held back")] == ["hot"]
    assert [each["seconds"] for each in messages.read(other.said, "spent")] == [{"end": 0.5}]
    assert [each["reason"] for each in messages.read(other.said, "stopped")] == ["limit"]
    assert len(asked) == 1
    assert asked[0].startswith("offset_copy ")
    for ratios in ([1.5, 1.6, 0.66667] * 2, [1.5, 1.6, 0.66667]):  # of two processes; then none were taken
        assert one.answer(RATIO, 7).samples == ratios
    assert len(asked) == 2


def test_no_answer(asked: list[Any]) -> None:
    """Why it is skipped, or fails; the next is answered."""
    one = Agent(timed.CLASSES)
    asked.append(NotImplementedError("no room"))
    assert one.answer(TIME, 0).skipped == "no room"
    asked.append(WrongOutputError("element [3]"))
    wrong = one.answer(RATIO, 0)
    assert (wrong.failed, wrong.samples) == ("WrongOutputError: element [3]", [])
    assert "Traceback" in wrong.said
    assert one.answer(TIME, 0).samples


def test_what_asv_asks_for_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """References are looked for in asv's order: the same benchmark's, then the next one's."""
    looked: list[str] = []
    monkeypatch.setenv(exchange.ADDRESS, "socket")
    monkeypatch.setattr(exchange, "ask", lambda _, describe, *__: describe(served.READY) and OUTCOME)
    monkeypatch.setattr(agent, "_AHEAD", 3)
    monkeypatch.setattr(
        jobs, "of", lambda launch, **_: jobs.Description(lambda _: served.job(reference=str(launch)), served.REFERENCE)
    )
    monkeypatch.setattr(WrittenAhead, "look_ahead", lambda _, now, later: looked.extend([now, *dict(later)]))
    first, second, *_ = sorted(timed.CLASSES)
    Agent(timed.CLASSES).answer(first, len(timed.CLASSES[first].points) - 2)
    wanted = [*list(timed.CLASSES[first].sweep.points())[-2:], *list(timed.CLASSES[second].sweep.points())[:2]]
    sweeps = [timed.CLASSES[name].sweep for name in (first, first, second, second)]
    assert looked == [str(sweep.launch(point)) for sweep, point in zip(sweeps, wanted, strict=True)]


def test_written_ahead() -> None:
    """References are written once, before they are asked for, as many as there is memory for; others when asked for."""
    begun = [threading.Event() for _ in range(9)]

    def reference(number: int) -> Reference:
        def fill(into: Any) -> None:
            begun[number].set()
            into[:] = number

        return Reference(10 + number, fill)

    known = {str(number): reference(number) for number in range(9)}
    ahead = WrittenAhead()
    ahead.look_ahead("0", known.items())
    assert all(each.wait(5) for each in begun[1:3])
    assert not begun[3].is_set()
    for number in (0, 1, 5, 2):  # 5 was not written ahead
        held = np.empty(10 + number, np.uint8)
        os.preadv(ahead.write(known[str(number)]), [held.data], 0)
        assert (held == number).all()
    ahead.look_ahead("5", known.items())
    assert all(each.wait(5) for each in begun[3:5])


#: In the place of asv's fork server: what it forks begins an agent and work in the background, and ends.
SCRIPT = """
    import os, sys, time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from kernelwatch import mortal
    from kernelwatch.asv import agent, background
    from kernelwatch.instrument.job import Outcome

    folder = Path({folder!r})

    def times(one, address, where):
        one.kept[{time!r}, 7] = Outcome(samples=(3.0,), copies=(2.0,))

    def slow(where):
        (where / "plan").write_text("planned")
        time.sleep(0.2)
        return os.nice(0)

    agent.times = times
    if not os.fork():
        background.ahead("slow", slow)
        background.ahead("broken", lambda _: 1 / 0)
        agent.begin(folder)
        os._exit(0)
    os.wait()
    if not os.fork():
        os.chdir(folder)
        found = [background.done(name, lambda where: "done here") for name in ("slow", "broken", "another")]
        Path("found").write_text(repr(found))
        os._exit(0)
    os.wait()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [False, True])
def test_processes(kill: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They outlive who began them, and end with the fork server; what broke off in the background is done in front."""
    words = {"root": str(ROOT), "folder": str(tmp_path), "time": TIME}
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv(exchange.ADDRESS, "socket")
    monkeypatch.setenv(mortal.RUN, str(os.getpid()))
    script = [sys.executable, "-c", textwrap.dedent(SCRIPT).format(**words)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        assert (tmp_path / "found").read_text() == "[19, 'done here', 'done here']"
        assert (tmp_path / "plan").read_text() == "planned"
        answer = agent.ask(tmp_path, TIME, 7)
        assert answer is not None, (tmp_path / agent.LOG).read_text()
        assert answer.samples == [3.0]
        server.kill() if kill else server.terminate()
    until = time.monotonic() + 10
    while agent.ask(tmp_path, RATIO, 7) is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert agent.ask(tmp_path, RATIO, 7) is None


def test_what_lies_in_everybodys_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a run that has a temporary folder of its own reads what was done ahead there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = background._folder("counted")
    folder.mkdir()
    (folder / background._LOCK).touch()
    (folder / background._RESULT).write_bytes(pickle.dumps("found there"))
    for run, found in ((None, "done here"), (str(os.getpid()), "found there")):
        monkeypatch.delenv(mortal.RUN, raising=False) if run is None else monkeypatch.setenv(mortal.RUN, run)
        assert background.done("counted", lambda _: "done here") == found
