"""Compares outputs with their references on the device, and inputs with what was uploaded, bit for bit.

Both with the guards behind them. A changed input is found after any number of launches, unless each launch undoes what
the one before it wrote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, device, inputs, tools, verification
from kernelwatch.instrument.buffers import Rotation
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job import Job
from kernelwatch.instrument.references import Fetch, References
from kernelwatch.instrument.replay import once
from kernelwatch.instrument.verification import WrongOutputError

#: Bytes that are uploaded and compared at a time where a reference is not kept on the device.
_PIECE = 64 << 20

_NONE = np.uint64(2**64 - 1)


class _Piece(NamedTuple):
    """What memory must hold from its byte `start` on, at a device address; `times`, from each to the next `pitch`."""

    start: int
    length: int
    address: int
    times: int
    pitch: int


class _Difference(NamedTuple):
    """What differs first: its byte, and the element that it is in, as it is and as it must be."""

    byte: int
    found: bytes
    wanted: bytes


def reference_bytes(job: Job) -> int:
    """Return the bytes of a job's reference: the output's and those of the guard behind it, or elements as float64."""
    return buffers.pitch(job.output_bytes) if job.near is None else 8 * math.prod(job.output_shape)


def check(
    job: Job, rotation: Rotation, fetch: Fetch, references: References, stack: ExitStack, *, is_lasting: bool
) -> None:
    """Compare every input of a rotation with what was uploaded, and every output with the reference.

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
    (result,) = device.allocate(tools.WIDTH)
    stack.callback(result.free)
    _check_inputs(job, rotation, result)
    if job.near is not None:
        _check_near(job, rotation, references.host(job.reference, reference_bytes(job), fetch))
        return
    for piece in _pieces(job, rotation, fetch, references, stack, is_lasting=is_lasting):
        found = _first_difference(rotation.output(0), piece, job, result)
        if found is not None:
            raise _wrong(job, rotation, found)


def _check_inputs(job: Job, rotation: Rotation, result: Any) -> None:
    """Compare every input with the block that all inputs repeat; it is uploaded as far as it is needed."""
    ends = (inputs.start(place) + length for place, length in enumerate(rotation.filled_bytes))
    block = buffers.pinned_block(job.exact_dtype)[: max(ends, default=0)]
    if not len(block):
        return
    (uploaded,) = device.allocate(len(block))
    with ExitStack() as stack:
        stack.callback(uploaded.free)
        device.cuda.memcpy_htod(uploaded, block)
        for place, first in enumerate(rotation.inputs(0)):
            for piece in _repeats(rotation, place, int(uploaded), len(block)):
                found = _first_difference(first, piece, job, result)
                if found is not None:
                    raise _written(job, rotation, place, found)


def _repeats(rotation: Rotation, place: int, block: int, period: int) -> Iterator[_Piece]:
    """Yield what an input holds in all sets: part of the block, or its end, the block some times, and its beginning."""
    begin, length = inputs.start(place), rotation.filled_bytes[place]
    if begin + length <= period:
        yield _Piece(0, length, block + begin, rotation.sets, rotation.input_pitch)
        return
    for start in range(0, rotation.sets * rotation.input_pitch, rotation.input_pitch):
        head = period - begin
        times, rest = divmod(length - head, period)
        yield _Piece(start, head, block + begin, 1, head)
        if times:
            yield _Piece(start + head, period, block, times, period)
        if rest:
            yield _Piece(start + length - rest, rest, block, 1, rest)


def _pieces(
    job: Job, rotation: Rotation, fetch: Fetch, references: References, stack: ExitStack, *, is_lasting: bool
) -> Iterator[_Piece]:
    """Yield the reference on the device: whole if it is kept there, else a stretch at a time."""
    length, each = reference_bytes(job), (rotation.sets, rotation.output_pitch)
    kept = references.device(job.reference, length, fetch) if is_lasting else None
    if kept is not None:
        yield _Piece(0, length, kept, *each)
        return
    held = references.host(job.reference, length, fetch)
    (staged,) = device.allocate(min(length, _PIECE))
    stack.callback(staged.free)
    for start in range(0, length, _PIECE):
        part = held[start : start + _PIECE]
        device.cuda.memcpy_htod(staged, part)
        yield _Piece(start, len(part), int(staged), *each)


def _first_difference(first: int, piece: _Piece, job: Job, result: Any) -> _Difference | None:
    """Return what differs in the memory from address `first` on; None if it holds the piece."""
    device.cuda.memcpy_htod(result, np.array([_NONE]))
    size, pitch = piece.length // tools.WIDTH, piece.pitch // tools.WIDTH
    compare = tools.load(tools.COMPARE, size=size, sets=piece.times, pitch=pitch)
    stream = device.cuda.Stream()
    once(lambda: compare(stream, int(result), first + piece.start, piece.address), stream)
    place = np.empty(1, np.uint64)
    device.cuda.memcpy_dtoh(place, result)
    if place[0] == _NONE:
        return None
    at = int(place[0]) * tools.WIDTH
    found, wanted = (np.empty(tools.WIDTH, np.uint8) for _ in range(2))
    device.cuda.memcpy_dtoh(found, first + piece.start + at)
    device.cuda.memcpy_dtoh(wanted, piece.address + at % piece.pitch)
    byte, itemsize = int(np.flatnonzero(found != wanted)[0]), np.dtype(job.dtype).itemsize
    values = (part.reshape(-1, itemsize)[byte // itemsize].tobytes() for part in (found, wanted))
    return _Difference(piece.start + at + byte, *values)


def _wrong(job: Job, rotation: Rotation, found: _Difference) -> WrongOutputError:
    """Say what differs in the outputs."""
    index, byte = divmod(found.byte, rotation.output_pitch)
    name = f"{job.name}, buffer {index}"
    if byte >= job.output_bytes:
        return WrongOutputError(verification.behind_the_end(name, byte - job.output_bytes))
    where = [int(axis) for axis in np.unravel_index(byte // np.dtype(job.dtype).itemsize, job.output_shape)]
    return WrongOutputError(verification.differs(name, where, found.found, found.wanted))


def _written(job: Job, rotation: Rotation, place: int, found: _Difference) -> WrongOutputError:
    """Say what differs in an input."""
    index, byte = divmod(found.byte, rotation.input_pitch)
    what, behind = f"{job.name}, buffer {index}: wrote to input {place}", byte - job.input_bytes[place]
    if behind >= 0:
        return WrongOutputError(f"{what}, first {behind} bytes behind its end")
    element = byte // np.dtype(job.dtype).itemsize
    values = f"{found.found.hex()}, it was {found.wanted.hex()} (bytes in memory order)"
    return WrongOutputError(f"{what}, which no kernel may: its element {element} is {values}")


def _check_near(job: Job, rotation: Rotation, reference: Bytes) -> None:
    """Read outputs back, and compare them within the job's bound."""
    expected = reference.view(np.float64).reshape(job.output_shape)
    guard = rotation.output_pitch - rotation.output_bytes
    length = verification.buffer_bytes(job.output_shape, np.dtype(job.dtype).itemsize, guard)
    buffer = np.empty(length, np.uint8)
    for index in range(rotation.sets):
        read = partial(rotation.read_output, index)
        verification.check_output(f"{job.name}, buffer {index}", expected, guard, read, buffer, job.near)
