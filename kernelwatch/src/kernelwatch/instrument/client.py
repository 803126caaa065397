"""The connection between a commit's process and the measuring process: messages over a Unix socket."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from multiprocessing import reduction
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import msgspec

from kernelwatch.instrument import parallel_copy
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import (
    Answer,
    DeviceFacts,
    Job,
    JobOutcome,
    JobProblem,
    Message,
    ReferenceRequest,
)
from kernelwatch.instrument.reference_memory import Reference, ReferenceMemory, map_memory
from kernelwatch.instrument.tolerance import WrongOutputError

#: The environment variable with the path of the measuring process's Unix socket.
ADDRESS = "KERNELWATCH_MEASURING"

#: Maximum seconds that the measuring process may take for a job, and for its start.
JOB_LIMIT, START_LIMIT = 60.0, 30.0

#: Advice for a job that takes too long.
ADVICE = "; use smaller arguments, or a faster reference"

_MAX_MESSAGE_BYTES = 128 << 20

#: Maximum number of mapped memories of other processes.
_MAX_MAPPED = 3

#: Type of a message -> its decoder. Building decoders takes 2 ms, so it is done before a commit's process forks.
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in (Answer, Job)}


class MeasuringError(RuntimeError):
    """The measuring process returned no outcome."""


#: `JobProblem.kind` -> the exception to raise.
_ERRORS = {"skipped": NotImplementedError, "wrong": WrongOutputError, "failed": MeasuringError}

#: Function that returns the reference memory of this process, for callers without a `write_reference`.
_own_memory = cache(ReferenceMemory)


class Channel:
    """One end of a connection over a Unix socket."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        #: Lock that a thread holds while it sends.
        self._send_lock = threading.Lock()

    def send(self, message: Message, *, waits: bool = True) -> None:
        """Send a message. While another thread is sending, wait for it, or send nothing if `waits` is False."""
        if self._send_lock.acquire(blocking=waits):
            try:
                self._connection.send_bytes(msgspec.json.encode(message))
            finally:
                self._send_lock.release()

    def receive(self, kind: Any, seconds: float) -> Any:
        """Return the next message, which must be of type `kind`.

        Raises MeasuringError if no message arrives within `seconds`, or it has another type. Raises EOFError or
        ConnectionError if the other end has closed the connection, and OSError if the message is too long.
        """
        self._wait_for_data(seconds, "the measuring process did not answer")
        try:
            return _DECODERS[kind].decode(self._connection.recv_bytes(_MAX_MESSAGE_BYTES))
        except msgspec.MsgspecError as error:
            raise MeasuringError(f"internal error: a message is not valid: {error}; please report it") from None

    def _wait_for_data(self, seconds: float, problem: str, advice: str = "") -> None:
        if not self._connection.poll(max(0.0, seconds)):
            raise MeasuringError(f"{problem} within {seconds:.0f} s{advice}")

    def send_handle(self, handle: int) -> None:
        """Send the file descriptor of memory with the requested reference."""
        reduction.send_handle(self._connection, handle, None)

    def receive_reference(
        self, length: int, seconds: float, mapped_memory: dict[int, Bytes]
    ) -> Callable[[int, Bytes], None]:
        """Receive the handle of a reference; return a reader of the reference, which is valid until the next request.

        The reader takes the index of the first byte to read, and the array to fill. `mapped_memory` caches the mapped
        memory of other processes by inode, because mapping takes as long as reading. Raises MeasuringError if the
        memory has fewer than `length` bytes, or no handle arrives within `seconds`.
        """
        self._wait_for_data(seconds, "the reference was not computed", ADVICE)
        handle = reduction.recv_handle(self._connection)
        try:
            inode = os.fstat(handle).st_ino
            memory = mapped_memory.pop(inode, None)
            if memory is None or len(memory) < length:
                memory = map_memory(handle, 0)
            mapped_memory[inode] = memory  # as the newest
        finally:
            os.close(handle)
        if len(mapped_memory) > _MAX_MAPPED:
            del mapped_memory[next(iter(mapped_memory))]
        if len(memory) < length:
            problem = f"internal error: the reference has {len(memory)} bytes, not {length}"
            raise MeasuringError(f"{problem}; please report it")
        return lambda start, into: parallel_copy.copy_array(memory[start : start + len(into)], into)


def request_outcome(
    address: str,
    make_job: Callable[[DeviceFacts], Job],
    reference: Reference,
    write_reference: Callable[[Reference], int] | None = None,
) -> JobOutcome:
    """Let the measuring process at an address measure a job, and return the outcome.

    `make_job` builds the job for the device of the measuring process. If that process requests the reference,
    `write_reference` writes it, and returns the file descriptor of its memory. The default writes into memory that this
    process reuses. Exceptions of both functions are passed on.

    Raises
    ------
    NotImplementedError
        The job cannot be measured on this device.
    WrongOutputError
        The job's output is wrong.
    MeasuringError
        The measuring process did not start, has stopped, did not answer in time, or failed to measure; or it requested
        a reference of another length.
    """
    deadline = time.monotonic() + START_LIMIT
    while True:
        with closing(connect(address, deadline)) as connection:
            channel = Channel(connection)
            try:
                answer = channel.receive(Answer, START_LIMIT)
            except (EOFError, ConnectionError):  # the process was ending
                continue
            if isinstance(answer, DeviceFacts):
                channel.send(make_job(answer))
                answer = _receive_answer(channel)
            while isinstance(answer, ReferenceRequest):
                if answer.length != reference.length:
                    raise MeasuringError(
                        f"internal error: the commit's process prepared a reference of {reference.length} bytes, "
                        f"but the measuring process expects {answer.length}; please report it"
                    )
                with suppress(ConnectionError):  # the process has answered already, and does not need the reference
                    channel.send_handle((write_reference or _own_memory().write)(reference))
                answer = _receive_answer(channel)
        if isinstance(answer, JobOutcome):
            return answer
        if isinstance(answer, JobProblem):
            raise _ERRORS[answer.kind](answer.text)
        # Otherwise the answer is a Restart: connect to the new process.


def _receive_answer(channel: Channel) -> Answer:
    try:
        answer: Answer = channel.receive(Answer, JOB_LIMIT + START_LIMIT)
    except (EOFError, ConnectionError):
        raise MeasuringError(
            "the measuring process closed the connection; the run printed why on standard error"
        ) from None
    return answer


def query_device(address: str) -> DeviceFacts | None:
    """Return the measuring process's device; None if the process cannot measure.

    Raises MeasuringError if the process does not start or does not answer, EOFError or ConnectionError if it ends.
    """
    with closing(connect(address, time.monotonic() + START_LIMIT)) as connection:
        answer = Channel(connection).receive(Answer, START_LIMIT)
    return answer if isinstance(answer, DeviceFacts) else None


def connect(address: str, deadline: float) -> Connection[Any, Any]:
    """Connect to the measuring process at an address; wait while the process starts.

    Raises MeasuringError if the process has not started by `deadline`, a time of `time.monotonic`, or its folder does
    not exist.
    """
    while time.monotonic() < deadline and Path(address).parent.exists():
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return Client(address, "AF_UNIX")
        time.sleep(0.01)
    raise MeasuringError("the measuring process did not start; the run printed why on standard error")
