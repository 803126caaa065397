"""The connection between asv's processes and the measuring process: messages of `job` over a Unix socket."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing import reduction
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job import (
    Again,
    Answer,
    Job,
    Message,
    Outcome,
    Problem,
    Ready,
    ReferenceLength,
    ReferenceRequest,
)
from kernelwatch.instrument.verification import WrongOutputError

#: The environment variable with the path of the measuring process's Unix socket.
ADDRESS = "KERNELWATCH_MEASURING"

#: Seconds that the measuring process may take for a job, and to start.
LIMIT, BEGIN = 60.0, 30.0

_LARGEST = 128 << 20

M = TypeVar("M", bound=Message)

#: Made as asv's processes are forked, not in each of them: it takes 2 ms.
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (Answer, Job, ReferenceLength)
}


class Reference(NamedTuple):
    """The expected content of an output: its length in bytes, and a function that writes it into memory."""

    length: int
    fill: Callable[[Bytes], None]

    def content(self, length: int) -> Bytes:
        """Return the bytes in memory of this process; `length` is how many are wanted."""
        assert length == self.length
        found = np.empty(length, np.uint8)
        self.fill(found)
        return found


class MeasuringError(RuntimeError):
    """The measuring process returned no outcome."""


def _mapped(handle: int, length: int) -> Bytes:
    return np.frombuffer(mmap.mmap(handle, length, mmap.MAP_SHARED | mmap.MAP_POPULATE), np.uint8)


class ReferenceMemory:
    """Memory that one process keeps and others write into. Allocating it anew would take as long as writing it.

    Parameters
    ----------
    page_lock : callable, optional
        Callable (bytes) -> callable: locks its pages, and what it returns undoes that.
    """

    def __init__(self, page_lock: Callable[[Bytes], Callable[[], None]] | None = None) -> None:
        self.handle = os.memfd_create("reference")
        self._page_lock = page_lock
        self._unlock: Callable[[], None] | None = None
        self._held: Bytes = np.empty(0, np.uint8)

    def hold(self, length: int) -> None:
        """Have at least that many bytes."""
        if length > len(self._held):
            if self._unlock is not None:
                self._unlock()
            os.truncate(self.handle, length)
            self._held = _mapped(self.handle, length)
            self._unlock = self._page_lock(self._held) if self._page_lock is not None else None

    def view(self, length: int) -> Bytes:
        """Return that many bytes. They are valid until the next call."""
        return self._held[:length]


class Line:
    """One end of a connection.

    Parameters
    ----------
    connection : Connection
        A Unix socket.
    """

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        #: Held by the thread that writes.
        self._writing = threading.RLock()

    def send(self, message: Message, *, waits: bool = True) -> None:
        """Send a message. If another thread is sending, wait for it; or send nothing, if this one may not wait."""
        if self._writing.acquire(blocking=waits):
            try:
                self._connection.send_bytes(msgspec.json.encode(message))
            finally:
                self._writing.release()

    def receive(self, kind: Any, seconds: float) -> Any:
        """Return the next message, of that type.

        Raises
        ------
        MeasuringError
            No message arrives in time, or the message has another type or a value out of bounds.
        """
        try:
            if not self._connection.poll(max(0.0, seconds)):
                raise MeasuringError(f"no answer within {seconds:.0f} s")
            return _DECODERS[kind].decode(self._connection.recv_bytes(_LARGEST))
        except msgspec.MsgspecError as error:
            raise MeasuringError(f"not a message: {error}") from None

    def want(self, length: int, memory: ReferenceMemory) -> None:
        """Ask the other end for that many bytes, in memory of this one."""
        memory.hold(length)
        with self._writing:  # the handle belongs to the message
            self.send(ReferenceRequest(length))
            reduction.send_handle(self._connection, memory.handle, None)

    def write(self, wanted: ReferenceRequest, content: Reference) -> None:
        """Write what the other end asked for into its memory, and report that it is done."""
        handle = reduction.recv_handle(self._connection)
        try:
            if wanted.length == content.length <= os.fstat(handle).st_size:
                content.fill(_mapped(handle, content.length))
        finally:
            os.close(handle)
        self.send(ReferenceLength(content.length))

    def written(self, length: int, memory: ReferenceMemory, seconds: float) -> Bytes:
        """Return what the other end wrote, once it has. Raises MeasuringError if that is not so many bytes."""
        found = self.receive(ReferenceLength, seconds)
        if found.length != length:
            raise MeasuringError(f"{found.length} bytes are expected of an output and its guard of {length}")
        return memory.view(length)


def ask(address: str, describe: Callable[[Ready], Job], reference: Reference) -> Outcome:
    """Have a job measured.

    Parameters
    ----------
    address : str
        The measuring process's socket.
    describe : callable
        Makes the job for the device that is ready.
    reference : Reference
        The expected output. It is written only if the measuring process does not have it.

    Raises
    ------
    NotImplementedError
        The job cannot be measured on this device.
    WrongOutputError
        Its output is wrong.
    MeasuringError
        There is no measuring process, or it stopped.
    """
    until = time.monotonic() + BEGIN
    while True:
        with closing(connected(address, until)) as connection:
            answer = _answer(Line(connection), describe, reference)
        if isinstance(answer, Outcome):
            return answer
        if isinstance(answer, Problem):
            raise {"skipped": NotImplementedError, "wrong": WrongOutputError}.get(answer.kind, MeasuringError)(
                answer.text
            )


def ready(address: str) -> Ready | None:
    """Return what the measuring process says of its device; None if it cannot measure. Raises MeasuringError."""
    with closing(connected(address, time.monotonic() + BEGIN)) as connection:
        answer = Line(connection).receive(Answer, BEGIN)
    return answer if isinstance(answer, Ready) else None


def _answer(line: Line, describe: Callable[[Ready], Job], reference: Reference) -> Answer:
    """Return the measuring process's final answer."""
    try:
        answer: Answer = line.receive(Answer, BEGIN)
    except (EOFError, ConnectionError):  # it was about to end
        return Again()
    if isinstance(answer, Ready):
        line.send(describe(answer))
        answer = _next(line)
    while isinstance(answer, ReferenceRequest):
        with suppress(ConnectionError):  # it has answered meanwhile, without
            line.write(answer, reference)
        answer = _next(line)
    return answer


def _next(line: Line) -> Answer:
    try:
        answer: Answer = line.receive(Answer, LIMIT + BEGIN)
    except (EOFError, ConnectionError):
        raise MeasuringError("the measuring process stopped; its output says why") from None
    return answer


def connected(address: str, until: float) -> Connection[Any, Any]:
    """Connect; wait if the process is still starting. Raises MeasuringError if none starts."""
    while time.monotonic() < until and Path(address).parent.exists():
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return Client(address, "AF_UNIX")
        time.sleep(0.01)
    raise MeasuringError("the measuring process did not start; its output says why")
