"""The measuring process, its connections and who keeps it running, without a GPU."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks import timed
from benchmarks.instruments import exchange, machine
from benchmarks.instruments.exchange import Line, MeasuringError, Reference, SharedMemory
from benchmarks.instruments.inputs import Bytes
from benchmarks.instruments.job import Job, Outcome, Ready
from benchmarks.instruments.verification import WrongOutputError
from gpu_kernels import build
from runner import companions, measuring
from runner.companions import Companions

READY = Ready(arch="sm_90", multiprocessors=132)

#: Of an output, and of what is expected of it: the guard is in it.
OUTPUT, LENGTH = 5000, 5632


def job(**changes: Any) -> Job:
    """Return a job of no kernel."""
    known: dict[str, Any] = {
        "name": "no kernel",
        "commit": "c0ffee",
        "cubin": b"\x7fELF",
        "entry": "none",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "dtype": "int8",
        "output_shape": (OUTPUT,),
        "output_bytes": OUTPUT,
        "input_bytes": (OUTPUT,),
        "useful_bytes": 2 * OUTPUT,
        "reference": "zeros",
        "samples": 2,
    }
    return Job(**{**known, **changes})


class References:
    """Knows nothing, unless told."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether a reference is kept."""
        return name in self.known


class Session:
    """Fetches the reference and answers, or does what it is told to."""

    def __init__(self, act: Callable[[Job], Any] = lambda _: None) -> None:
        self.references = References()
        self.fetched: list[Bytes] = []
        self._act = act

    def has_room(self, job: Job) -> bool:
        """Whether the device has a terabyte."""
        return job.set_bytes < 1 << 40

    def measure(self, jobs: Sequence[Job], fetch: Callable[[int], Bytes]) -> list[Outcome]:
        """Answer."""
        self._act(jobs[0])
        self.fetched.append(np.array(fetch(LENGTH)))
        self.references.known.add(jobs[0].reference)
        return [Outcome(samples=(1.0, 2.0), copies=(0.5, 0.5), seconds={"samples": 0.1})]


@contextmanager
def served(session: Session, folder: Path, **limits: Any) -> Iterator[str]:
    """A server in a thread; yields its address."""
    address = str(folder / "measuring")
    server = measuring.Server(session, READY, SharedMemory(), **limits)  # type: ignore[arg-type]
    goes_on: list[bool] = [True]

    def serve() -> None:
        with Listener(address, "AF_UNIX") as listener:
            while goes_on[-1]:
                with listener.accept() as connection:
                    try:
                        goes_on.append(server.answer(Line(connection)))
                    except (EOFError, OSError, MeasuringError):
                        goes_on.append(goes_on[-1] and not stopping)

    stopping: list[bool] = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    while not Path(address).exists():
        time.sleep(0.001)
    yield address
    stopping.append(True)
    until = time.monotonic() + 5
    while thread.is_alive() and time.monotonic() < until:  # a connection ends the wait for one
        with suppress(MeasuringError):
            exchange.connected(address, time.monotonic() + 0.02).close()
        thread.join(0.01)
    assert not thread.is_alive()


def _zeros(into: Bytes) -> None:
    into[:] = 7


REFERENCE = Reference(LENGTH, _zeros)


def _same(sent: Job, _: Ready) -> Job:
    return sent


def test_a_job_is_measured(tmp_path: Path) -> None:
    """The reference crosses once, unless it is asked for again; the job arrives as it was sent."""
    seen: list[Job] = []
    session = Session(seen.append)
    sent = job(scalars=(0.5,), integers=(-3, 2**40), exact_dtype="float32", every=3)
    with served(session, tmp_path) as address:
        for _ in range(2):
            found = exchange.ask(address, lambda _: sent, REFERENCE)
            assert (found.samples, found.copies, found.seconds) == ((1.0, 2.0), (0.5, 0.5), {"samples": 0.1})
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
        exchange.ask(address, lambda _: job(), REFERENCE)


def test_a_process_serves_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit's job is for the next process."""
    monkeypatch.setattr(exchange, "BEGIN", 0.3)
    with served(Session(), tmp_path) as address:
        exchange.ask(address, lambda _: job(), REFERENCE)
        with pytest.raises(MeasuringError, match="no measuring process begins"):
            exchange.ask(address, lambda _: job(commit="decade"), REFERENCE)


def test_in_turns(tmp_path: Path) -> None:
    """A job takes turns with that of the other commit, whose outcome is kept until it is asked for, and verified then.

    A third commit's has no companion.
    """
    ours, theirs, other = job(commit="ours"), job(commit="theirs"), job(commit="ours", name="another")
    (tmp_path / "0.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, (ours, other))))
    (tmp_path / "1.jsonl").write_bytes(msgspec.json.encode(theirs))
    done: list[str] = []

    class InTurns(Session):
        def measure(self, jobs: Sequence[Job], fetch: Callable[[int], Bytes]) -> list[Outcome]:
            done.append(" and ".join(f"{each.commit}'s {each.name}" for each in jobs))
            fetch(LENGTH)
            return [Outcome(samples=(1.0 * place,), copies=(2.0,)) for place in range(len(jobs))]

        def verify(self, job: Job, fetch: Callable[[int], Bytes]) -> None:
            done.append(f"{job.commit}'s verified")
            fetch(LENGTH)

    with served(InTurns(), tmp_path, companions=Companions(tmp_path)) as address:
        found = [exchange.ask(address, partial(_same, one), REFERENCE) for one in (other, ours, theirs, ours)]
    assert done == [
        "ours's another",
        "ours's no kernel and theirs's no kernel",
        "theirs's verified",
        "ours's no kernel and theirs's no kernel",
    ]
    assert [each.samples for each in found] == [(0.0,), (0.0,), (1.0,), (0.0,)]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"cubin": b"other code"}, True),
        ({"reference": "other"}, True),
        ({"name": "another"}, False),
        ({"isolated": True}, False),
        ({"useful_bytes": 1}, False),
        ({"samples": 3}, False),
    ],
)
def test_companions(changes: dict[str, Any], known: bool, tmp_path: Path) -> None:
    """The same launch of another commit, if it can share buffers and instrument; for commits that are known alone."""
    ours, theirs = job(commit="ours"), job(**{"commit": "theirs", **changes})
    for place, each in enumerate((ours, theirs)):
        (tmp_path / f"{place}.jsonl").write_bytes(msgspec.json.encode(each) + b"\n")
    companions = Companions(tmp_path)
    assert companions.of(ours) == ([theirs] if known else [])
    assert companions.of(job(commit="a third")) == []
    assert companions.commits(ours) == {"ours", "theirs"}
    assert companions.commits(job(commit="a third")) == {"a third"}
    assert Companions().of(ours) == []


def test_every_configuration_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """As asv's processes describe it: the same launches, and the same ways to time them."""
    monkeypatch.setattr(build, "cubin", lambda kernel, *_, **__: build.Cubin(str(kernel), b"code", None))  # type: ignore[arg-type]
    asked: list[Job] = []
    monkeypatch.setattr(timed, "ask", lambda what: asked.append(what.job(READY)))
    for each in timed.CLASSES.values():
        for params in itertools.product(*each.params):
            each().measured(params)
    assert list(companions.jobs(READY)) == asked


def test_a_commit_that_nobody_knows(tmp_path: Path) -> None:
    """Git says so, before anything is measured."""
    with pytest.raises(subprocess.CalledProcessError):
        companions.describe(["no-such-commit"], str(tmp_path / "measuring"), tmp_path)


def test_no_reference_of_what_cannot_fit(tmp_path: Path) -> None:
    """It would not fit on the host either."""

    def full(_: Job) -> None:
        raise NotImplementedError("needs more than there is")

    def fill(_: Bytes) -> None:
        pytest.fail("a reference was asked for")

    huge = job(output_shape=(1 << 42,), output_bytes=1 << 42)
    with served(Session(full), tmp_path) as address, pytest.raises(NotImplementedError, match="needs more"):
        exchange.ask(address, lambda _: huge, Reference(LENGTH, fill))


@pytest.mark.parametrize("length", [LENGTH - 1, LENGTH + 1])
def test_a_reference_of_another_length(length: int, tmp_path: Path) -> None:
    """It is no reference of this output."""
    with served(Session(), tmp_path) as address, pytest.raises(MeasuringError, match=f"{length} bytes are expected"):
        exchange.ask(address, lambda _: job(), Reference(length, _zeros))


@pytest.mark.parametrize(
    "changes",
    [
        {"grid": (0, 1, 1)},
        {"samples": 10**6},
        {"cubin": b""},
        {"input_bytes": (1,) * 9},
        {"useful_bytes": -1},
        {"output_shape": ()},
    ],
)
def test_a_job_out_of_bounds(changes: dict[str, Any], tmp_path: Path) -> None:
    """It is refused, and the process goes on."""
    with served(Session(), tmp_path) as address:
        with pytest.raises(MeasuringError, match="broke off"):
            exchange.ask(address, lambda _: job(**changes), REFERENCE)
        assert exchange.ask(address, lambda _: job(), REFERENCE).samples == (1.0, 2.0)


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
        exchange.ask(address, lambda _: job(), REFERENCE)
    assert ended.is_set()


#: Stands in the place of `python -m runner.measuring SOCKET`: counts its starts, says what the test wants, and ends.
SCRIPT = """\
    #!{python}
    import os, sys, time
    with open({count!r}, "a") as file:
        file.write("x")
    starts = os.path.getsize({count!r})
    if starts <= {lives}:
        print('{{"l2_bytes": 5}}', flush=True)
    if starts == {lives}:
        sys.stdin.read()
"""


@pytest.mark.parametrize("lives", [1, 3])
def test_it_is_kept_running(lives: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one process ends, the next begins; all end with the run."""
    count, script = tmp_path / "count", tmp_path / "python"
    script.write_text(textwrap.dedent(SCRIPT).format(python=sys.executable, count=str(count), lives=lives))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    with measuring.running() as facts:
        address = os.environ[exchange.ADDRESS]
        until = time.monotonic() + 10
        while (not count.exists() or count.stat().st_size < lives or not facts) and time.monotonic() < until:
            time.sleep(0.01)
        assert count.stat().st_size == lives
        assert facts == {"l2_bytes": 5}
        assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert exchange.ADDRESS not in os.environ
    assert not Path(address).parent.exists()
    assert count.stat().st_size == lives


def test_one_that_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder goes, so that nobody waits for it."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    with measuring.running() as facts:
        assert facts == {}
        with pytest.raises(MeasuringError, match="no measuring process begins"):
            exchange.ask(os.environ[exchange.ADDRESS], lambda _: job(), REFERENCE)


def test_no_gpu_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU there is nothing to measure with."""
    monkeypatch.setattr(machine, "nvml", lambda: None)
    with measuring.running() as facts:
        assert facts == {}
        assert exchange.ADDRESS not in os.environ
