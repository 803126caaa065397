"""The connection between a commit's process and the measuring process: messages of `job` over a Unix socket."""

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
from kernelwatch.instrument.protocol import Answer, Job, Message, Outcome, Problem, Ready, ReferenceRequest
from kernelwatch.instrument.reference_memory import Reference, ReferenceMemory, mapped
from kernelwatch.instrument.tolerance import WrongOutputError

#: The environment variable with the path of the measuring process's Unix socket.
ADDRESS = "KERNELWATCH_MEASURING"

#: Seconds that the measuring process may take for a job, and to start.
LIMIT, BEGIN = 60.0, 30.0

_LARGEST = 128 << 20

#: As many memories of other processes as stay mapped: an agent's.
_MAPPED = 3

#: Made before a commit's process forks, not in each of those: it takes 2 ms.
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in (Answer, Job)}


class MeasuringError(RuntimeError):
    """The measuring process returned no outcome."""


#: What a problem is raised as.
_ERRORS = {"skipped": NotImplementedError, "wrong": WrongOutputError, "failed": MeasuringError}

#: The memory of this process, for who has no other.
_own_memory = cache(ReferenceMemory)


class Line:
    """One end of a connection, which is a Unix socket."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        #: Held by the thread that writes.
        self._writing = threading.Lock()

    def send(self, message: Message, *, waits: bool = True) -> None:
        """Send a message. If another thread is sending, wait for it; or send nothing, if this one may not wait."""
        if self._writing.acquire(blocking=waits):
            try:
                self._connection.send_bytes(msgspec.json.encode(message))
            finally:
                self._writing.release()

    def receive(self, kind: Any, seconds: float) -> Any:
        """Return the next message, of that type. Raises MeasuringError if none arrives in time, or it has another."""
        self._wait(seconds)
        try:
            return _DECODERS[kind].decode(self._connection.recv_bytes(_LARGEST))
        except msgspec.MsgspecError as error:
            raise MeasuringError(f"not a message: {error}") from None

    def _wait(self, seconds: float) -> None:
        if not self._connection.poll(max(0.0, seconds)):
            raise MeasuringError(f"no answer within {seconds:.0f} s")

    def write(self, handle: int) -> None:
        """Give the other end the handle of memory that holds what it asked for."""
        reduction.send_handle(self._connection, handle, None)

    def written(self, length: int, seconds: float, known: dict[int, Bytes]) -> Callable[[int, Bytes], None]:
        """Return what reads from the `length` bytes that the other end wrote, until the next are asked for.

        `known` is the memory of other processes that is mapped here, by its inode: to map it anew takes as long as to
        read it. Raises MeasuringError if there are not so many bytes, or they take longer than so many seconds.
        """
        self._wait(seconds)
        handle = reduction.recv_handle(self._connection)
        try:
            memory = os.fstat(handle)
            held = known.pop(memory.st_ino, None)
            held = known[memory.st_ino] = held if held is not None and len(held) >= length else mapped(handle, 0)
        finally:
            os.close(handle)
        if len(known) > _MAPPED:
            del known[next(iter(known))]
        if len(held) < length:
            raise MeasuringError(f"{len(held)} bytes were written of {length}")
        return lambda start, into: parallel_copy.copy(held[start : start + len(into)], into)


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
            line = Line(connection)
            try:
                answer = line.receive(Answer, BEGIN)
            except (EOFError, ConnectionError):  # it was about to end
                continue
            if isinstance(answer, Ready):
                line.send(describe(answer))
                answer = _next(line)
            while isinstance(answer, ReferenceRequest):
                if answer.length != reference.length:
                    raise MeasuringError(f"{reference.length} bytes are expected of outputs of {answer.length}")
                with suppress(ConnectionError):  # it has answered meanwhile, without
                    line.write((write or _own_memory().write)(reference))
                answer = _next(line)
        if isinstance(answer, Outcome):
            return answer
        if isinstance(answer, Problem):
            raise _ERRORS[answer.kind](answer.text)


def _next(line: Line) -> Answer:
    try:
        answer: Answer = line.receive(Answer, LIMIT + BEGIN)
    except (EOFError, ConnectionError):
        raise MeasuringError("the measuring process stopped; its output says why") from None
    return answer


def ready(address: str) -> Ready | None:
    """Return what the measuring process says of its device; None if it cannot measure. Raises MeasuringError."""
    with closing(connected(address, time.monotonic() + BEGIN)) as connection:
        answer = Line(connection).receive(Answer, BEGIN)
    return answer if isinstance(answer, Ready) else None


def connected(address: str, until: float) -> Connection[Any, Any]:
    """Connect; wait if the process is still starting. Raises MeasuringError if none starts."""
    while time.monotonic() < until and Path(address).parent.exists():
        with suppress(FileNotFoundError, ConnectionRefusedError):
            return Client(address, "AF_UNIX")
        time.sleep(0.01)
    raise MeasuringError("the measuring process did not start; its output says why")
