"""The measuring process. One runs beside the suite for each GPU. Only it uses CUDA; commits' processes send it jobs.

`python -m kernelwatch.instrument.server SOCKET SECONDS` prints a line of facts when it can answer, and ends when its
standard input is closed. What serves is a process that it forks, and that alone initialises CUDA. It serves the jobs of
one commit, or of several that are measured in turns. It ends when a job of another commit comes, when an error occurs
on the device, or when a job takes too long. Then the next one is forked.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from multiprocessing.connection import Listener
from pathlib import Path
from typing import IO, Any

import msgspec

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import buffers, device, fingerprint, machine, throttling
from kernelwatch.instrument.client import ADDRESS, BEGIN, LIMIT, Line, MeasuringError
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.memory import Source
from kernelwatch.instrument.protocol import Again, Job, Outcome, Problem, Ready, ReferenceRequest
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.tolerance import WrongOutputError

#: Seconds that the process may take to end.
PATIENCE = 20.0


class Companions:
    """The jobs of all commits that are measured in turns: a folder's, a file a commit, read when they are needed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @cached_property
    def _jobs(self) -> list[Job]:
        paths = sorted(self._folder.glob("*.jsonl")) if self._folder else []
        return [msgspec.json.decode(line, type=Job) for path in paths for line in path.read_bytes().splitlines()]

    def commits(self, job: Job) -> set[str]:
        """Return the digests of the packages whose jobs share a process with a job: its own, and those in turns."""
        known = {each.package_digest for each in self._jobs}
        return known if job.package_digest in known else {job.package_digest}

    def of(self, job: Job) -> list[Job]:
        """Return the same job of each other commit that can take turns with it; none for a commit that is not known."""
        same = [each for each in self._jobs if each.name == job.name and each.shares_buffers(job)]
        return [each for each in same if each != job] if job in same else []


class Server:
    """Answers one connection after another; a job may take `limit` seconds, and takes turns with its `companions`."""

    def __init__(self, session: Session, ready: Ready, limit: float = LIMIT, companions: Path | None = None) -> None:
        self._session, self._ready, self._limit, self._companions = session, ready, limit, Companions(companions)
        #: Where other processes write references, by inode.
        self._memory: dict[int, Bytes] = {}
        #: The digests of the packages whose jobs are served here.
        self._commits: set[str] = set()
        #: What was measured in turns with others, a round after the other, and is not verified yet.
        self._held: defaultdict[Job, deque[Outcome]] = defaultdict(deque)

    def answer(self, line: Line) -> bool:
        """Serve a connection; return whether this process may go on."""
        line.send(self._ready)
        job: Job = line.receive(Job, BEGIN)
        if self._commits and job.package_digest not in self._commits:
            line.send(Again())
            return False
        self._commits = self._commits or self._companions.commits(job)
        with _at_most(self._limit, partial(self._give_up, line)):
            try:
                found: Outcome | Problem = self._measured(job, line)
            except NotImplementedError as error:
                found = Problem(kind="skipped", text=str(error))
            except WrongOutputError as error:
                found = Problem(kind="wrong", text=str(error))
            except Exception as error:  # noqa: BLE001 -- whatever it is, the device may no longer be usable
                found = Problem(kind="failed", text=f"{type(error).__name__}: {error}")
        line.send(found)
        return not (isinstance(found, Problem) and found.kind == "failed")

    def _measured(self, job: Job, line: Line) -> Outcome:
        """Return the outcome of a job. Keep those of its companions, which are requested next."""
        _, _, wanted = buffers.stretches(job.arrays, is_verified=job.is_verified)
        is_wanted = wanted and self._session.has_room(job) and not self._session.references.has(job.reference)
        if is_wanted:  # it is made while the samples are taken
            line.send(ReferenceRequest(wanted))

        def fetch(length: int) -> Source:
            if not is_wanted:
                line.send(ReferenceRequest(length))
            return line.written(length, self._limit, self._memory)

        if self._held[job]:
            self._session.verify(job, fetch)
            return self._held[job].popleft()
        others = self._companions.of(job)
        found, *more = self._session.measure([job, *others], fetch)
        for other, outcome in zip(others, more, strict=True):
            self._held[other].append(outcome)
        return found

    def _give_up(self, line: Line) -> None:
        """End this process, whose kernel does not end. Who asked is told so, unless a message to it is under way."""
        with suppress(OSError):
            line.send(Problem(kind="failed", text=f"took longer than {self._limit:g} s"), waits=False)
        os._exit(1)


@contextmanager
def _at_most(seconds: float, expired: Any) -> Iterator[None]:
    """Call `expired` if the `with` block takes longer. Behind the block it is neither called nor under way."""
    timer = threading.Timer(seconds, expired)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # what has begun is not cancelled


def main(address: str, limit: str) -> None:
    """Serve by one process after the other, until standard input ends or one never begins."""
    fork, run = multiprocessing.get_context("fork"), os.dup(sys.stdin.fileno())
    with Listener(address, "AF_UNIX") as listener, suppress(EOFError):
        while not select.select([run], [], [], 0)[0]:  # nothing is written there, but its end can be read
            here, there = fork.Pipe(duplex=False)
            process = fork.Process(target=_serve, args=(listener, Path(address).parent, float(limit), there, run))
            process.start()
            there.close()
            print(json.dumps(here.recv()), flush=True)
            process.join()
    shutil.rmtree(Path(address).parent, ignore_errors=True)


def _serve(listener: Listener, folder: Path, limit: float, began: Any, run: int) -> None:
    """Answer until the run ends, or this process should not go on."""
    threading.Thread(target=_end_with, args=(run,), daemon=True).start()
    others = throttling.processes(machine.nvml())
    server: Server | None = None
    try:
        session = Session(throttling.watch())
        fetch = device.l2_fetch_bytes()
        ready = device.ready(fingerprint.conditions({**machine.volatile(), "l2_fetch_bytes": fetch}))
        facts = {"l2_bytes": device.l2_bytes(), "l2_fetch_bytes": fetch, "others_on_gpu": others}
        server = Server(session, ready, limit, folder)
    except NotImplementedError as error:  # no usable device: everything is skipped for that reason
        problem, facts = Problem(kind="skipped", text=str(error)), {}
    began.send(facts)
    goes_on = True
    while goes_on:
        with suppress(OSError, EOFError, MeasuringError), listener.accept() as connection:
            line = Line(connection)
            if server is None:
                line.send(problem)
            else:
                goes_on = server.answer(line)
    os._exit(0)  # a device on which something went wrong may not let this process end by itself


def _end_with(run: int) -> None:
    """End this process as the run does, however that ends."""
    os.read(run, 1)
    os._exit(0)


@contextmanager
def running(limit: float = LIMIT) -> Iterator[dict[str, Any]]:
    """Run a measuring process, which processes started within the `with` block can find.

    It gets one queue to the GPU instead of eight: a context is then made in half the time. A configuration may take
    `limit` seconds. Yields what the process says of the device: empty without a GPU, and until the process has begun.
    """
    facts: dict[str, Any] = {}
    if machine.nvml() is None:
        yield facts
        return
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    folder = Path(tempfile.mkdtemp())
    address = str(folder / "measuring")
    command = [sys.executable, "-m", "kernelwatch.instrument.server", address, str(limit)]
    # In a session of its own: a Ctrl-C is for the run, which ends it.
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def hear(said: IO[str] = process.stdout) -> None:
            if line := said.readline():
                facts.update(json.loads(line))
            else:  # nobody waits for it
                shutil.rmtree(folder, ignore_errors=True)

        hearing = threading.Thread(target=hear, daemon=True)
        hearing.start()
        os.environ[ADDRESS] = address
        try:
            yield facts
        finally:
            del os.environ[ADDRESS]
            process.stdin.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:  # the driver does not answer: the run is over all the same
                os.killpg(process.pid, signal.SIGKILL)
            hearing.join()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
