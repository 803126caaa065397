"""The measuring process and its connections, without a GPU."""

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest

from kernelwatch.instrument import client, server
from kernelwatch.instrument.client import Channel, MeasuringError
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import Job, JobOutcome, Restart
from kernelwatch.instrument.memory import FetchReference
from kernelwatch.instrument.reference_memory import Reference, ReferenceMemory, ReferenceWriter
from kernelwatch.instrument.tolerance import WrongOutputError
from tests.served import FACTS, LENGTH, REFERENCE, Session, array, job, request_outcome, serve_session, sevens


def test_job_and_reference_are_exchanged(tmp_path: Path) -> None:
    seen: list[Job] = []
    session = Session(seen.append)
    sent = job(parameters=bytes(range(256)), oracle=job(entry="other"), most=3)
    with serve_session(session, tmp_path) as address:
        for _ in range(2):
            outcome = request_outcome(address, sent)
            assert (outcome.samples, outcome.copies) == ((1.0, 2.0), (0.5, 0.5))
    assert seen == [sent, sent]
    assert all((fetched == 7).all() and len(fetched) == LENGTH for fetched in session.fetched)


#: A job too large for the device, and a reference that must not be computed.
HUGE = job(arrays=(array(shape=(1 << 42,)),), addresses=(0,))
UNASKED = Reference(LENGTH, lambda _: pytest.fail("the reference was computed"))


@pytest.mark.parametrize(
    ("raised", "sent", "reference", "expected", "message"),
    [
        (NotImplementedError("needs 5 bytes"), job(), REFERENCE, NotImplementedError, "^needs 5 bytes$"),
        (WrongOutputError("element [3] is 0"), job(), REFERENCE, WrongOutputError, r"^element \[3\] is 0$"),
        (RuntimeError("illegal address"), job(), REFERENCE, MeasuringError, "^RuntimeError: illegal address$"),
        (NotImplementedError("needs more"), HUGE, UNASKED, NotImplementedError, "^needs more$"),
        (None, job(), Reference(LENGTH - 1, sevens), MeasuringError, f"{LENGTH - 1} bytes, but the measuring"),
        (None, job(), Reference(LENGTH + 1, sevens), MeasuringError, f"{LENGTH + 1} bytes, but the measuring"),
    ],
)
def test_exceptions_keep_their_type(
    raised: Exception | None, sent: Job, reference: Reference, expected: type[Exception], message: str, tmp_path: Path
) -> None:
    """A skip and a wrong output keep their type. All other exceptions become a MeasuringError."""
    session = Session(mock.Mock(side_effect=raised))
    with serve_session(session, tmp_path) as address, pytest.raises(expected, match=message):
        request_outcome(address, sent, reference)


def test_process_serves_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends when another commit connects."""
    monkeypatch.setattr(client, "START_LIMIT", 0.3)
    with serve_session(Session(), tmp_path) as address:
        request_outcome(address, job())
        with pytest.raises(MeasuringError, match="the measuring process did not start"):
            request_outcome(address, job(package_digest="decade"))
        assert not Path(address).exists(), "the process still listens"


def test_process_survives_an_invalid_job(tmp_path: Path) -> None:
    """Only the connection ends."""
    with serve_session(Session(), tmp_path) as address:
        with pytest.raises(MeasuringError, match="the measuring process closed the connection"):
            request_outcome(address, job(grid="wide"))
        assert request_outcome(address, job()).samples == (1.0, 2.0)


def test_most_recent_mappings_stay() -> None:
    writing_end, reading_end = map(Channel, multiprocessing.Pipe())
    memories = [ReferenceMemory() for _ in range(client._MAX_MAPPED + 1)]
    mapped_memory: dict[int, Bytes] = {}
    for memory in (*memories[:-1], memories[0], memories[-1]):
        writing_end.send_handle(memory.write(REFERENCE))
        target = np.empty(LENGTH, np.uint8)
        reading_end.receive_reference(LENGTH, 5.0, mapped_memory)(0, target)
        assert (target == 7).all()
    recent = (*memories[2:-1], memories[0], memories[-1])  # memories[1] was dropped: memories[0] was used again
    assert list(mapped_memory) == [os.fstat(mapping.handle).st_ino for mapping in recent]


@pytest.mark.parametrize(
    ("room", "later", "written"),
    [(9, "abc", "ab"), (9, "xaab", "ab"), (1, "abc", "a"), (0, "abc", ""), (9, "", "")],
)
def test_references_are_written_ahead(room: int, later: str, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of jobs after x, at most two references are written, once each. A quarter of the memory holds `room` of them."""
    monkeypatch.setattr(os, "sysconf", lambda name: 4 * room if name == "SC_PHYS_PAGES" else LENGTH)
    filled: list[str] = []

    def fill(name: str, into: Bytes) -> None:
        filled.append(name)
        into[:] = ord(name)

    references = {name: Reference(LENGTH, partial(fill, name)) for name in "abcx"}
    ahead = ReferenceWriter()
    ahead.look_ahead("x", [(name, references[name]) for name in later])
    ahead._threads.shutdown()
    assert sorted(filled) == list(written)
    for name in "abx":
        assert ahead._current not in ahead._free, "the current reference could be overwritten"
        assert os.pread(ahead.write(references[name]), LENGTH, 0) == name.encode() * LENGTH
    assert sorted(filled) == list("abx"), "a reference was computed twice"


def test_jobs_of_two_commits_alternate(tmp_path: Path) -> None:
    """Outcomes of equal jobs are handed out one by one. Those of the partner are verified when requested."""
    own_job, partner_job = job(package_digest="ours"), job(package_digest="theirs")
    unpaired_job = job(package_digest="ours", name="another")
    (tmp_path / "0.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, (own_job, unpaired_job))))
    (tmp_path / "1.jsonl").write_bytes(msgspec.json.encode(partner_job))
    done: list[str] = []

    class InTurns(Session):
        def measure(self, jobs: Sequence[Job], fetch: FetchReference) -> list[JobOutcome]:
            done.append(" and ".join(f"{turn_job.package_digest}'s {turn_job.name}" for turn_job in jobs))
            fetch(LENGTH)
            turn = len(done) - 1 - done.count("theirs's verified")
            return [JobOutcome(samples=(10.0 * place + turn,), copies=(2.0,)) for place in range(len(jobs))]

        def verify(self, job: Job, fetch: FetchReference) -> None:
            done.append(f"{job.package_digest}'s verified")
            fetch(LENGTH)

    jobs = (unpaired_job, own_job, own_job, partner_job, partner_job, own_job)
    with serve_session(InTurns(), tmp_path, jobs_folder=tmp_path) as address:
        outcomes = [request_outcome(address, turn_job) for turn_job in jobs]
    both = "ours's no kernel and theirs's no kernel"  # the default name of a job
    assert done == ["ours's another", both, both, *["theirs's verified"] * 2, both]
    # The partner's outcomes, 10 + turn, are those of turns 1 and 2.
    assert [outcome.samples for outcome in outcomes] == [(0.0,), (1.0,), (2.0,), (11.0,), (12.0,), (3.0,)]


@pytest.mark.parametrize(
    ("changes", "is_same"),
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
def test_same_jobs_share_buffers(changes: dict[str, Any], is_same: bool, tmp_path: Path) -> None:
    """The jobs of two commits are the same if name and settings are equal; code and reference may differ."""
    own_job, partner_job = job(package_digest="ours"), job(**{"package_digest": "theirs", **changes})
    for place, turn_job in enumerate((own_job, partner_job)):
        (tmp_path / f"{place}.jsonl").write_bytes(msgspec.json.encode(turn_job) + b"\n")
    interleaved = server.InterleavedJobs(tmp_path)
    assert interleaved.find_same_jobs(own_job) == ([partner_job] if is_same else [])
    assert interleaved.find_same_jobs(job(package_digest="a third")) == []
    assert interleaved.find_packages(own_job) == {"ours", "theirs"}
    assert interleaved.find_packages(job(package_digest="a third")) == {"a third"}
    assert server.InterleavedJobs(None).find_same_jobs(own_job) == []


def test_messages_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a process that ends does not wait for a sender; it sends no message."""
    run_end, process_end = multiprocessing.Pipe()
    line = Channel(run_end)
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    line._send_lock.acquire()
    server.Server(Session(), FACTS)._end_process(line)  # type: ignore[arg-type]
    assert (exits, process_end.poll(0.01)) == ([1], False)
    begin = time.monotonic()
    threading.Timer(0.1, line._send_lock.release).start()
    line.send(Restart())
    assert time.monotonic() - begin >= 0.1
    assert msgspec.json.decode(process_end.recv_bytes(), type=Restart) == Restart()
