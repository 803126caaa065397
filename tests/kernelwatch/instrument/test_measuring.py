"""The measuring process, its connections and who keeps it running, without a GPU."""

from __future__ import annotations

import multiprocessing
import os
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import client, machine, server
from kernelwatch.instrument.client import Line, MeasuringError
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.memory import Fetch
from kernelwatch.instrument.protocol import Again, Job, Outcome
from kernelwatch.instrument.reference_memory import Reference, ReferenceMemory, WrittenAhead
from kernelwatch.instrument.tolerance import WrongOutputError
from tests.served import LENGTH, READY, REFERENCE, Session, array, job, served, sevens


def _asked(address: str, sent: Job, reference: Reference = REFERENCE) -> Outcome:
    return client.ask(address, lambda _: sent, reference)


def test_a_job_is_measured(tmp_path: Path) -> None:
    """The reference crosses once, unless it is asked for again; the job arrives as it was sent."""
    seen: list[Job] = []
    session = Session(seen.append)
    sent = job(parameters=bytes(range(256)), oracle=job(entry="other"), most=3)
    with served(session, tmp_path) as address:
        for _ in range(2):
            found = _asked(address, sent)
            assert (found.samples, found.copies) == ((1.0, 2.0), (0.5, 0.5))
    assert seen == [sent, sent]
    assert all((each == 7).all() and len(each) == LENGTH for each in session.fetched)


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (NotImplementedError("needs 5 bytes"), NotImplementedError, "^needs 5 bytes$"),
        (WrongOutputError("element [3] is 0"), WrongOutputError, r"^element \[3\] is 0$"),
        (RuntimeError("illegal address"), MeasuringError, "^RuntimeError: illegal address$"),
    ],
)
def test_problems(raised: Exception, expected: type[Exception], message: str, tmp_path: Path) -> None:
    """What went wrong arrives as what it is, though a reference was under way."""

    def fail(_: Job) -> None:
        raise raised

    with served(Session(fail), tmp_path) as address, pytest.raises(expected, match=message):
        _asked(address, job())


def test_a_process_serves_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit's job is for the next process."""
    monkeypatch.setattr(client, "BEGIN", 0.3)
    with served(Session(), tmp_path) as address:
        _asked(address, job())
        with pytest.raises(MeasuringError, match="the measuring process did not start"):
            _asked(address, job(package_digest="decade"))
        assert not Path(address).exists(), "this one is over"


def test_no_reference_of_what_cannot_fit(tmp_path: Path) -> None:
    """It would not fit on the host either."""

    def full(_: Job) -> None:
        raise NotImplementedError("needs more than there is")

    def fill(_: Bytes) -> None:
        pytest.fail("a reference was asked for")

    huge = job(arrays=(array(shape=(1 << 42,)),), addresses=(0,))
    with served(Session(full), tmp_path) as address, pytest.raises(NotImplementedError, match="needs more"):
        _asked(address, huge, Reference(LENGTH, fill))


@pytest.mark.parametrize("length", [LENGTH - 1, LENGTH + 1])
def test_a_reference_of_another_length(length: int, tmp_path: Path) -> None:
    """It is no reference of this output."""
    with served(Session(), tmp_path) as address, pytest.raises(MeasuringError, match=f"{length} bytes are expected"):
        _asked(address, job(), Reference(length, sevens))


def test_what_is_no_job(tmp_path: Path) -> None:
    """It is refused, and the process goes on."""
    with served(Session(), tmp_path) as address:
        with pytest.raises(MeasuringError, match="the measuring process stopped"):
            _asked(address, job(grid="wide"))
        assert _asked(address, job()).samples == (1.0, 2.0)


def test_memory_stays_mapped() -> None:
    """That of the processes that wrote last."""
    one, other = map(Line, multiprocessing.Pipe())
    memories = [ReferenceMemory() for _ in range(client._MAPPED + 1)]
    known: dict[int, Bytes] = {}
    for memory in (*memories[:-1], memories[0], memories[-1]):
        one.write(memory.write(REFERENCE))
        found = np.empty(LENGTH, np.uint8)
        other.written(LENGTH, 5.0, known)(0, found)
        assert (found == 7).all()
    assert list(known) == [os.fstat(each.handle).st_ino for each in (*memories[2:-1], memories[0], memories[-1])]


@pytest.mark.parametrize(
    ("room", "later", "written"),
    [(9, "abc", "ab"), (9, "xaab", "ab"), (1, "abc", "a"), (0, "abc", ""), (9, "", "")],
)
def test_references_written_ahead(room: int, later: str, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two that were never asked for, as far as a quarter of the memory goes; and not once more."""
    monkeypatch.setattr(os, "sysconf", lambda name: 4 * room if name == "SC_PHYS_PAGES" else LENGTH)
    made: list[str] = []

    def fill(name: str, into: Bytes) -> None:
        made.append(name)
        into[:] = ord(name)

    known = {name: Reference(LENGTH, partial(fill, name)) for name in "abcx"}
    ahead = WrittenAhead()
    ahead.look_ahead("x", [(name, known[name]) for name in later])
    ahead._threads.shutdown()
    assert sorted(made) == list(written)
    for name in "abx":
        assert ahead._now not in ahead._free, "it would be overwritten"
        assert os.pread(ahead.write(known[name]), LENGTH, 0) == name.encode() * LENGTH
    assert sorted(made) == list("abx")


def test_in_turns(tmp_path: Path) -> None:
    """A job takes turns with the other commit's, whose outcomes are kept, round by round, and verified when asked for.

    A third commit's has no companion.
    """
    ours, theirs = job(package_digest="ours"), job(package_digest="theirs")
    other = job(package_digest="ours", name="another")
    (tmp_path / "0.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, (ours, other))))
    (tmp_path / "1.jsonl").write_bytes(msgspec.json.encode(theirs))
    done: list[str] = []

    class InTurns(Session):
        def measure(self, jobs: Sequence[Job], fetch: Fetch) -> list[Outcome]:
            done.append(" and ".join(f"{each.package_digest}'s {each.name}" for each in jobs))
            fetch(LENGTH)
            turn = len(done) - 1 - done.count("theirs's verified")
            return [Outcome(samples=(10.0 * place + turn,), copies=(2.0,)) for place in range(len(jobs))]

        def verify(self, job: Job, fetch: Fetch) -> None:
            done.append(f"{job.package_digest}'s verified")
            fetch(LENGTH)

    with served(InTurns(), tmp_path, companions=tmp_path) as address:
        found = [_asked(address, one) for one in (other, ours, ours, theirs, theirs, ours)]
    assert done == [
        "ours's another",
        *["ours's no kernel and theirs's no kernel"] * 2,
        *["theirs's verified"] * 2,
        "ours's no kernel and theirs's no kernel",
    ]
    assert [each.samples for each in found] == [(0.0,), (1.0,), (2.0,), (11.0,), (12.0,), (3.0,)]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"cubin": b"other code"}, True),
        ({"reference": "other"}, True),
        ({"name": "another"}, False),
        ({"isolated": True}, False),
        ({"in_l2": True}, False),
        ({"useful_bytes": 1}, False),
        ({"samples": 3}, False),
    ],
)
def test_companions(changes: dict[str, Any], known: bool, tmp_path: Path) -> None:
    """The same launch of another commit, if it can share buffers and instrument; for commits that are known alone."""
    ours, theirs = job(package_digest="ours"), job(**{"package_digest": "theirs", **changes})
    for place, each in enumerate((ours, theirs)):
        (tmp_path / f"{place}.jsonl").write_bytes(msgspec.json.encode(each) + b"\n")
    companions = server.Companions(tmp_path)
    assert companions.of(ours) == ([theirs] if known else [])
    assert companions.of(job(package_digest="a third")) == []
    assert companions.commits(ours) == {"ours", "theirs"}
    assert companions.commits(job(package_digest="a third")) == {"a third"}
    assert server.Companions(None).of(ours) == []


def test_a_job_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process says so and ends itself."""
    ended = threading.Event()

    def end(_: int) -> None:
        ended.set()

    monkeypatch.setattr(os, "_exit", end)
    with (
        served(Session(lambda _: ended.wait(5)), tmp_path, limit=0.05) as address,
        pytest.raises(MeasuringError, match=r"took longer than 0\.05 s"),
    ):
        _asked(address, job())
    assert ended.is_set()


def test_what_expires_as_a_job_ends() -> None:
    """It is over before the job's answer is sent."""
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def expired() -> None:
        begun.set()
        goes_on.wait(5)
        ended.set()

    with server._at_most(0.001, expired):
        assert begun.wait(5)
        threading.Timer(0.1, goes_on.set).start()
    assert ended.is_set()


def test_one_thread_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message waits for the one under way; a process that ends itself sends none."""
    one, other = multiprocessing.Pipe()
    line = Line(one)
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    line._writing.acquire()
    server.Server(Session(), READY)._give_up(line)  # type: ignore[arg-type]
    assert (exits, other.poll(0.01)) == ([1], False)
    threading.Timer(0.1, line._writing.release).start()
    begin = time.monotonic()
    line.send(Again())
    assert time.monotonic() - begin >= 0.1
    assert msgspec.json.decode(other.recv_bytes(), type=Again) == Again()


#: A measuring process on a GPU that falls off as the second job is measured: the next process finds none.
FALLS_OFF = """\
    #!{python}
    import sys
    from pathlib import Path
    from types import SimpleNamespace
    sys.path.insert(0, {root!r})
    from kernelwatch.instrument import server
    from tests import served

    fallen, jobs = Path({fallen!r}), []

    def act(job):
        jobs.append(job)
        if len(jobs) == 2:
            fallen.touch()
            raise RuntimeError("cuStreamSynchronize failed: GPU is lost")

    def session(watch):
        if fallen.exists():
            raise NotImplementedError("no usable CUDA device: GPU is lost")
        return served.Session(act)

    facts = dict(l2_bytes=lambda: 1, l2_fetch_bytes=lambda: 64)
    server.device = SimpleNamespace(ready=lambda conditions: served.READY, **facts)
    class Server(server.Server):
        def __init__(self, *given):
            Path({told!r}).write_text(str(given[2:]))
            super().__init__(*given)

    server.Session, server.Server = session, Server
    server.main(*sys.argv[3:])
"""


def test_a_gpu_that_falls_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured stays, one configuration fails, and each that follows is skipped with the reason.

    Where one process ends, the next begins; all end with the run.
    """
    script, told, fallen = (tmp_path / name for name in ("python", "told", "fallen"))
    given = {"python": sys.executable, "root": str(ROOT), "fallen": str(fallen), "told": str(told)}
    script.write_text(textwrap.dedent(FALLS_OFF).format(**given))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    with server.running(limit=7.5) as facts:
        address = os.environ[client.ADDRESS]
        assert _asked(address, job()).samples == (1.0, 2.0)
        assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
        assert told.read_text() == str((7.5, Path(address).parent)), "what was said to it"
        with pytest.raises(MeasuringError, match=r"^RuntimeError: cuStreamSynchronize failed: GPU is lost$"):
            _asked(address, job())
        for _ in range(2):
            with pytest.raises(NotImplementedError, match=r"^no usable CUDA device: GPU is lost$"):
                _asked(address, job())
    assert facts == {"l2_bytes": 1, "l2_fetch_bytes": 64, "others_on_gpu": 0}, "of the first"
    assert client.ADDRESS not in os.environ
    assert not Path(address).parent.exists()


def test_one_that_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder goes, so that nobody waits for it."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    with server.running() as facts:
        assert facts == {}
        with pytest.raises(MeasuringError, match="the measuring process did not start"):
            _asked(os.environ[client.ADDRESS], job())


def test_no_gpu_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU there is nothing to measure with."""
    monkeypatch.setattr(machine, "nvml", lambda: None)
    with server.running() as facts:
        assert facts == {}
        assert client.ADDRESS not in os.environ
