"""The measuring process of a run. Only this process uses CUDA; commits' processes send it jobs.

`python -m kernelwatch.instrument.server SOCKET SECONDS` prints a line of facts when it is ready, and ends when its
standard input is closed. A forked process initialises CUDA and serves the jobs of one package, or of several in an
interleaved run. It ends when a job of another package arrives, when a measurement fails, or when a job takes too long.
Then the next process is forked.
"""

import atexit
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import msgspec

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import buffers, device, fingerprint, machine, throttling
from kernelwatch.instrument.client import ADDRESS, ADVICE, JOB_LIMIT, START_LIMIT, Channel, MeasuringError
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import DeviceFacts, Job, JobOutcome, JobProblem, ReferenceRequest, Restart
from kernelwatch.instrument.memory import ReferenceReader
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.tolerance import WrongOutputError

#: Maximum seconds for the process to end.
END_LIMIT = 20.0


class InterleavedJobs:
    """The jobs of all commits of an interleaved run, read from a folder with one file per commit when needed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @cached_property
    def _jobs(self) -> list[Job]:
        paths = sorted(self._folder.glob("*.jsonl")) if self._folder else []
        return [msgspec.json.decode(line, type=Job) for path in paths for line in path.read_bytes().splitlines()]

    def find_packages(self, job: Job) -> set[str]:
        """Return the digests of the packages whose jobs the process of a job may measure.

        One process measures all packages of an interleaved run. Any other package has a process of its own.
        """
        digests = {job.package_digest for job in self._jobs}
        return digests if job.package_digest in digests else {job.package_digest}

    def find_same_jobs(self, job: Job) -> list[Job]:
        """Return other jobs of the interleaved run that can share a job's buffers; none for a job of another run."""
        if job not in self._jobs:
            return []
        candidates = (candidate for candidate in self._jobs if candidate.name == job.name and candidate != job)
        return [candidate for candidate in candidates if candidate.shares_buffers(job)]


class Server:
    """Serves connections one after another. A job may take `job_seconds`.

    `jobs_folder` has the jobs of an interleaved run, if any.
    """

    def __init__(
        self, session: Session, facts: DeviceFacts, job_seconds: float = JOB_LIMIT, jobs_folder: Path | None = None
    ) -> None:
        self._session, self._facts, self._limit = session, facts, job_seconds
        self._interleaved = InterleavedJobs(jobs_folder)
        #: Memory of references from other processes, by inode.
        self._mapped_memory: dict[int, Bytes] = {}
        #: Digests of the packages whose jobs are served here.
        self._package_digests: set[str] = set()
        #: Outcomes of interleaved jobs that are not verified yet, one per round.
        self._unverified: defaultdict[Job, deque[JobOutcome]] = defaultdict(deque)

    def serve_connection(self, channel: Channel) -> bool:
        """Serve one connection; return whether this process may serve another one."""
        channel.send(self._facts)
        job: Job = channel.receive(Job, START_LIMIT)
        if self._package_digests and job.package_digest not in self._package_digests:
            channel.send(Restart())
            return False
        self._package_digests = self._package_digests or self._interleaved.find_packages(job)
        with _limit_time(self._limit, partial(self._end_process, channel)):
            try:
                outcome: JobOutcome | JobProblem = self._measure_job(job, channel)
            except NotImplementedError as error:
                outcome = JobProblem(kind="skipped", text=str(error))
            except WrongOutputError as error:
                outcome = JobProblem(kind="wrong", text=str(error))
            except Exception as error:  # noqa: BLE001 -- after any other error the device may be unusable
                outcome = JobProblem(kind="failed", text=f"{type(error).__name__}: {error}")
        channel.send(outcome)
        return not (isinstance(outcome, JobProblem) and outcome.kind == "failed")

    def _measure_job(self, job: Job, channel: Channel) -> JobOutcome:
        length = buffers.lay_out_reference(job.arrays, is_verified=job.is_verified).length
        requests_early = (
            length
            and self._session.needs_reference(job)
            and self._session.has_room(job)
            and not self._session.references.has_reference(job.reference)
        )
        if requests_early:  # the reference is written while the samples are taken
            channel.send(ReferenceRequest(length))

        def fetch_reference(length: int) -> ReferenceReader:
            if not requests_early:
                channel.send(ReferenceRequest(length))
            return channel.receive_reference(length, self._limit, self._mapped_memory)

        if self._unverified[job]:
            self._session.verify(job, fetch_reference)
            return self._unverified[job].popleft()
        other_jobs = self._interleaved.find_same_jobs(job)
        own_outcome, *other_outcomes = self._session.measure([job, *other_jobs], fetch_reference)
        for other_job, outcome in zip(other_jobs, other_outcomes, strict=True):
            self._unverified[other_job].append(outcome)
        return own_outcome

    def _end_process(self, channel: Channel) -> None:
        """End this process, because a job took too long. Tell the client, unless another thread is sending."""
        text = f"the job, with its reference, took longer than {self._limit:g} s{ADVICE}"
        with suppress(OSError):
            channel.send(JobProblem(kind="failed", text=text), waits=False)
        os._exit(1)


@contextmanager
def _limit_time(seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` in a thread if the `with` block takes longer than `seconds`."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # `end` may be running


def main(address: str, job_seconds: str) -> None:
    """Fork serving processes one after another, until one fails to start or the run closes this standard input.

    `address` is the path of the Unix socket. A job may take `job_seconds`.
    """
    fork, run_input = multiprocessing.get_context("fork"), os.dup(sys.stdin.fileno())
    # The run may end first and remove the folder, which the listener needs.
    with suppress(EOFError, FileNotFoundError), Listener(address, "AF_UNIX") as listener:
        while not select.select([run_input], [], [], 0)[0]:  # readable only at its end: nothing is written to it
            receiving_end, sending_end = fork.Pipe(duplex=False)
            process = fork.Process(
                target=_serve_jobs, args=(listener, Path(address).parent, float(job_seconds), sending_end, run_input)
            )
            process.start()
            sending_end.close()
            print(json.dumps(receiving_end.recv()), flush=True)
            process.join()
    shutil.rmtree(Path(address).parent, ignore_errors=True)


def _serve_jobs(listener: Listener, folder: Path, job_seconds: float, facts_pipe: Any, run_input: int) -> None:
    threading.Thread(target=_end_with_run, args=(run_input,), daemon=True).start()
    other_processes = throttling.count_processes(machine.nvml_handle())
    server: Server | None = None
    try:
        session = Session(throttling.watch_gpu())
        fetch = device.get_l2_fetch_bytes()
        device_facts = device.describe_device(
            fingerprint.hash_conditions({**machine.volatile_facts(), "l2_fetch_bytes": fetch})
        )
        facts = {"l2_bytes": device.l2_bytes(), "l2_fetch_bytes": fetch, "others_on_gpu": other_processes}
        server = Server(session, device_facts, job_seconds, folder)
    except NotImplementedError as error:  # without a usable device, every job is skipped with this reason
        problem, facts = JobProblem(kind="skipped", text=str(error)), {}
    facts_pipe.send(facts)
    goes_on = True
    while goes_on:
        with suppress(OSError, EOFError, MeasuringError), listener.accept() as connection:
            channel = Channel(connection)
            if server is None:
                channel.send(problem)
            else:
                goes_on = server.serve_connection(channel)
    os._exit(0)  # after an error on the device, an ordinary exit may hang


def _end_with_run(run_input: int) -> None:
    os.read(run_input, 1)  # returns when the run closes its end of the pipe, or ends
    os._exit(0)


@contextmanager
def start_server(job_seconds: float = JOB_LIMIT, *, defers_wait: bool = False) -> Iterator[dict[str, Any]]:
    """Run a measuring process for the processes that are started within the `with` block.

    A job may take `job_seconds`. Yield the facts of the device, which are empty until the measuring process is ready.
    Without a GPU, no process is started, and the facts stay empty. The exit of the block ends the measuring process,
    and waits for its end. With `defers_wait`, only the exit of the interpreter waits.
    """
    facts: dict[str, Any] = {}
    if machine.nvml_handle() is None:
        yield facts
        return
    # One queue to the GPU, not eight, which halves the time of creating a context.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    folder = Path(tempfile.mkdtemp())
    address = str(folder / "measuring")
    command = [sys.executable, "-m", "kernelwatch.instrument.server", address, str(job_seconds)]
    # A new session, so that Ctrl-C reaches only the run, which ends this process.
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    process = subprocess.Popen(command, text=True, cwd=ROOT, **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    output = process.stdout

    def read_facts() -> None:
        if line := output.readline():
            facts.update(json.loads(line))
        else:  # the process ended, so clients need not wait
            shutil.rmtree(folder, ignore_errors=True)

    reading = threading.Thread(target=read_facts, daemon=True)
    reading.start()

    def wait_for_end() -> None:
        try:
            process.wait(END_LIMIT)
        except subprocess.TimeoutExpired:  # the driver does not respond; the run ends anyway
            os.killpg(process.pid, signal.SIGKILL)
        reading.join()
        output.close()
        shutil.rmtree(folder, ignore_errors=True)

    os.environ[ADDRESS] = address
    try:
        yield facts
    finally:
        del os.environ[ADDRESS]
        process.stdin.close()
        if defers_wait:
            atexit.register(wait_for_end)
        else:
            wait_for_end()


if __name__ == "__main__":
    main(*sys.argv[1:])
