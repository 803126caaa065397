"""Compares outputs and their guards with their references on the device, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.instruments import buffers, device, tools, verification
from benchmarks.instruments.buffers import Rotation
from benchmarks.instruments.inputs import Bytes
from benchmarks.instruments.job import Job
from benchmarks.instruments.references import Fetch, References
from benchmarks.instruments.replay import once
from benchmarks.instruments.verification import WrongOutputError

#: Bytes that are uploaded and compared at a time where a reference is not kept on the device.
_PIECE = 64 << 20

_NONE = np.uint64(2**64 - 1)


class _Piece(NamedTuple):
    """A stretch of a reference, from its byte `start` on, at a device address."""

    start: int
    length: int
    address: int


def reference_bytes(job: Job) -> int:
    """Return the bytes of a job's reference: the output's and those of the guard behind it, or elements as float64."""
    return buffers.pitch(job.output_bytes) if job.near is None else 8 * math.prod(job.output_shape)


def check(
    job: Job, rotation: Rotation, fetch: Fetch, references: References, stack: ExitStack, *, is_lasting: bool
) -> None:
    """Compare every output of a rotation, and the guard behind it, with the reference.

    Parameters
    ----------
    job : Job
        What was launched on each set.
    rotation : Rotation
        Its buffers.
    fetch : callable
        Callable (bytes) -> the reference of one output in host memory. Where it must be equal: the output's bytes and
        the guard's. Where it need only be near: its elements as float64.
    references : References
        Keeps it.
    stack : ExitStack
        Frees what is allocated here.
    is_lasting : bool
        Whether the current context is the one that lasts.

    Raises
    ------
    WrongOutputError
        At the first element that differs, with its index, the value found and the value expected.
    """
    if job.near is not None:
        _check_near(job, rotation, references.host(job.reference, reference_bytes(job), fetch))
        return
    (result,) = device.allocate(tools.WIDTH)
    stack.callback(result.free)
    for piece in _pieces(job, reference_bytes(job), fetch, references, stack, is_lasting=is_lasting):
        place = _first_difference(rotation, piece, result)
        if place is not None:
            raise _wrong(job, rotation, piece, place)


def _pieces(
    job: Job, length: int, fetch: Fetch, references: References, stack: ExitStack, *, is_lasting: bool
) -> Iterator[_Piece]:
    """Yield the reference on the device: whole if it is kept there, else a stretch at a time."""
    kept = references.device(job.reference, length, fetch) if is_lasting else None
    if kept is not None:
        yield _Piece(0, length, kept)
        return
    held = references.host(job.reference, length, fetch)
    (staged,) = device.allocate(min(length, _PIECE))
    stack.callback(staged.free)
    for start in range(0, length, _PIECE):
        part = held[start : start + _PIECE]
        device.cuda.memcpy_htod(staged, part)
        yield _Piece(start, len(part), int(staged))


def _first_difference(rotation: Rotation, piece: _Piece, result: Any) -> int | None:
    """Return the first byte of a group of WIDTH bytes that differs in some output; None if all are equal."""
    device.cuda.memcpy_htod(result, np.array([_NONE]))
    compare = tools.load(
        tools.COMPARE,
        size=piece.length // tools.WIDTH,
        sets=rotation.sets,
        pitch=rotation.output_pitch // tools.WIDTH,
    )
    stream = device.cuda.Stream()
    once(lambda: compare(stream, int(result), rotation.output(0) + piece.start, piece.address), stream)
    found = np.empty(1, np.uint64)
    device.cuda.memcpy_dtoh(found, result)
    return None if found[0] == _NONE else int(found[0]) * tools.WIDTH + piece.start


def _wrong(job: Job, rotation: Rotation, piece: _Piece, place: int) -> WrongOutputError:
    """Say what differs at a byte of the outputs."""
    index, start = divmod(place, rotation.output_pitch)
    held, wanted = (np.empty(tools.WIDTH, np.uint8) for _ in range(2))
    rotation.read_output(index, start, held)
    device.cuda.memcpy_dtoh(wanted, piece.address + start - piece.start)
    byte = start + int(np.flatnonzero(held != wanted)[0])
    name = f"{job.name}, buffer {index}"
    if byte >= job.output_bytes:
        return WrongOutputError(verification.behind_the_end(name, byte - job.output_bytes))
    itemsize = np.dtype(job.dtype).itemsize
    element = byte // itemsize
    first = element * itemsize - start
    where = [int(axis) for axis in np.unravel_index(element, job.output_shape)]
    values = (part[first : first + itemsize].tobytes() for part in (held, wanted))
    return WrongOutputError(verification.differs(name, where, *values))


def _check_near(job: Job, rotation: Rotation, reference: Bytes) -> None:
    """Read outputs back, and compare them within the job's bound."""
    expected = reference.view(np.float64).reshape(job.output_shape)
    guard = rotation.output_pitch - rotation.output_bytes
    length = verification.buffer_bytes(job.output_shape, np.dtype(job.dtype).itemsize, guard)
    buffer = np.empty(length, np.uint8)
    for index in range(rotation.sets):
        read = partial(rotation.read_output, index)
        verification.check_output(f"{job.name}, buffer {index}", expected, guard, read, buffer, job.near)
