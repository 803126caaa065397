"""The connection between asv's processes and the measuring process: messages of `job` over a Unix socket."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from multiprocessing import reduction
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kernelwatch.instrument import threads
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

#: As many memories of other processes as stay mapped: an agent's.
_MAPPED = 3

#: Made as asv's processes are forked, not in each of them: it takes 2 ms.
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (Answer, Job, ReferenceLength)
}


class MeasuringError(RuntimeError):
    """The measuring process returned no outcome."""


class Reference(NamedTuple):
    """The expected content of an output: its length in bytes, and a function that writes it into memory."""

    length: int
    fill: Callable[[Bytes], None]

    def content(self) -> Bytes:
        """Return the bytes in memory of this process."""
        found = np.empty(self.length, np.uint8)
        self.fill(found)
        return found


class ReferenceMemory:
    """Memory that its process writes references into and another reads. To make it anew would take as long as writing.

    `handle` is the memory's.
    """

    def __init__(self) -> None:
        self.handle = os.memfd_create("reference")
        self._held: Bytes = np.empty(0, np.uint8)

    def write(self, reference: Reference) -> int:
        """Write a reference and return the memory's handle."""
        if reference.length > len(self._held):
            os.truncate(self.handle, reference.length)
            self._held = _mapped(self.handle, reference.length)
        reference.fill(self._held[: reference.length])
        return self.handle


def _mapped(handle: int, length: int) -> Bytes:
    return np.frombuffer(mmap.mmap(handle, length, mmap.MAP_SHARED), np.uint8)


#: The memory of this process, for who has no other.
_own_memory = cache(ReferenceMemory)


class Line:
    """One end of a connection, which is a Unix socket."""

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

        Raises MeasuringError if none arrives in time, or it has another type or a value out of bounds.
        """
        try:
            if not self._connection.poll(max(0.0, seconds)):
                raise MeasuringError(f"no answer within {seconds:.0f} s")
            return _DECODERS[kind].decode(self._connection.recv_bytes(_LARGEST))
        except msgspec.MsgspecError as error:
            raise MeasuringError(f"not a message: {error}") from None

    def write(self, length: int, handle: int) -> None:
        """Report that what the other end asked for lies in the memory of that handle."""
        with self._writing:  # the handle belongs to the message
            self.send(ReferenceLength(length))
            reduction.send_handle(self._connection, handle, None)

    def written(self, length: int, seconds: float, known: dict[int, Bytes]) -> Callable[[int, Bytes], None]:
        """Return what reads from the `length` bytes that the other end wrote, until the next are asked for.

        `known` is the memory of other processes that is mapped here, by its inode: to map it anew takes as long as to
        read it. Raises MeasuringError if there are not so many bytes, or they take longer than so many seconds.
        """
        found = self.receive(ReferenceLength, seconds)
        handle = reduction.recv_handle(self._connection)
        try:
            memory = os.fstat(handle)
            held = known.pop(memory.st_ino, None)
            held = known[memory.st_ino] = held if held is not None and len(held) >= length else _mapped(handle, 0)
        finally:
            os.close(handle)
        if len(known) > _MAPPED:
            del known[next(iter(known))]
        if not found.length == length <= len(held):
            raise MeasuringError(f"{found.length} bytes are expected of an output and its guard of {length}")
        return lambda start, into: threads.copy(held[start : start + len(into)], into)


def ask(
    address: str,
    describe: Callable[[Ready], Job],
    reference: Reference,
    write: Callable[[Reference], int] | None = None,
) -> Outcome:
    """Have a job measured, which `describe` makes for the device that is ready, by the process at an address.

    The reference is written only if that process does not have it: by `write`, or as `ReferenceMemory.write`.

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
            answer = _answer(Line(connection), describe, reference, write or _own_memory().write)
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


def _answer(
    line: Line, describe: Callable[[Ready], Job], reference: Reference, write: Callable[[Reference], int]
) -> Answer:
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
            line.write(reference.length, write(reference))
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
