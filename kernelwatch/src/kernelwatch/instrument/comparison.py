"""Compares outputs with their references on the device, and inputs with what was uploaded, bit for bit.

Both with the guards behind them. A changed input is found after any number of launches, unless each launch undoes what
the one before it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, device, tools, verification
from kernelwatch.instrument.buffers import Rotation, Stretch
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job import DeviceArray, Job
from kernelwatch.instrument.replay import once
from kernelwatch.instrument.verification import Near, WrongOutputError

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


class Expected(NamedTuple):
    """What outputs must hold, as `stretches` lays it out: its address on the device, if it has one, or on the host."""

    host: Callable[[], Bytes]
    device: Callable[[], int | None] = lambda: None


def check(job: Job, rotation: Rotation, expected: Expected | None) -> None:
    """Compare every input of a rotation with what was uploaded, and every output with the reference.

    The job was launched on each set. The reference holds, where an output must be equal, its bytes and the guard's;
    where it need only be near, its elements as float64. Without a reference, only guards are looked at.

    Raises
    ------
    WrongOutputError
        At the first element that differs, with its index, the value found and the value expected.
    """
    outputs, _, _ = buffers.stretches(job.arrays, is_verified=True)
    with ExitStack() as stack:
        (result,) = device.allocate(tools.WIDTH)
        stack.callback(result.free)
        _check_inputs(job, rotation, result)
        for stretch in outputs:
            array = stretch.array
            if expected is None:
                _check_near(job, rotation, array, None)
            elif array.ulp is not None:
                _check_near(job, rotation, array, expected.host()[stretch.start :][: stretch.length])
            else:
                _check(job, rotation, array, _pieces(rotation, stretch, expected), result)


def _check_inputs(job: Job, rotation: Rotation, result: Any) -> None:
    """Compare every input with the block that all inputs repeat, uploaded as far as it is needed, or what was given."""
    inputs_of = [each for each in job.arrays if not each.is_written]
    for dtype in dict.fromkeys(each.exact_dtype for each in inputs_of if not each.is_given):
        mine = [each for each in inputs_of if not each.is_given and each.exact_dtype == dtype]
        ends = (each.begin + buffers.pitch(each.nbytes) for each in mine)
        block = buffers.pinned_block(dtype)[: max(ends)]
        with _uploaded(block) as address:
            for array in mine:
                _check(job, rotation, array, _repeats(rotation, array, address, len(block)), result)
    for array in inputs_of:
        if array.is_given:
            given = rotation.given[array.name]
            with _uploaded(given) as address:
                piece = _Piece(0, len(given), address, rotation.sets, rotation.pitch(array))
                _check(job, rotation, array, [piece], result)


@contextmanager
def _uploaded(content: Bytes) -> Iterator[int]:
    (uploaded,) = device.allocate(len(content))
    try:
        device.cuda.memcpy_htod(uploaded, content)
        yield int(uploaded)
    finally:
        uploaded.free()


def _check(job: Job, rotation: Rotation, array: DeviceArray, pieces: Iterable[_Piece], result: Any) -> None:
    for piece in pieces:
        found = _first_difference(rotation.address(array, 0), piece, array, result)
        if found is not None:
            raise _wrong(job, rotation, array, found)


def _repeats(rotation: Rotation, array: DeviceArray, block: int, period: int) -> Iterator[_Piece]:
    """Yield what an input holds in all sets: part of the block, or its end, the block some times, and its beginning."""
    begin, length, pitch = array.begin, buffers.pitch(array.nbytes), rotation.pitch(array)
    if begin + length <= period:
        yield _Piece(0, length, block + begin, rotation.sets, pitch)
        return
    for start in range(0, rotation.sets * pitch, pitch):
        head = period - begin
        times, rest = divmod(length - head, period)
        yield _Piece(start, head, block + begin, 1, head)
        if times:
            yield _Piece(start + head, period, block, times, period)
        if rest:
            yield _Piece(start + length - rest, rest, block, 1, rest)


def _pieces(rotation: Rotation, stretch: Stretch, expected: Expected) -> Iterator[_Piece]:
    """Yield what is expected of an output on the device: whole if it is kept there, else a part at a time."""
    length, each = buffers.pitch(stretch.length), (rotation.sets, rotation.pitch(stretch.array))
    kept = expected.device()
    if kept is not None:
        yield _Piece(0, length, kept + stretch.start, *each)
        return
    held = expected.host()[stretch.start : stretch.start + length]
    for start in range(0, length, _PIECE):
        part = held[start : start + _PIECE]
        with _uploaded(part) as address:
            yield _Piece(start, len(part), address, *each)


def _first_difference(first: int, piece: _Piece, array: DeviceArray, result: Any) -> _Difference | None:
    """Return what differs in the memory from address `first` on; None if it holds the piece."""
    device.cuda.memcpy_htod(result, np.array([_NONE]))
    size, pitch = piece.length // tools.WIDTH, piece.pitch // tools.WIDTH
    compare = tools.load(tools.COMPARE, size=size, sets=piece.times, pitch=pitch)
    stream = device.cuda.Stream()
    given = compare.given(int(result), first + piece.start, piece.address)
    once(lambda: compare(stream, given), stream)
    place = np.empty(1, np.uint64)
    device.cuda.memcpy_dtoh(place, result)
    if place[0] == _NONE:
        return None
    at = int(place[0]) * tools.WIDTH
    found, wanted = (np.empty(tools.WIDTH, np.uint8) for _ in range(2))
    device.cuda.memcpy_dtoh(found, first + piece.start + at)
    device.cuda.memcpy_dtoh(wanted, piece.address + at % piece.pitch)
    byte, itemsize = int(np.flatnonzero(found != wanted)[0]), np.dtype(array.dtype).itemsize
    first_of = byte // itemsize * itemsize
    values = (part[first_of : first_of + itemsize].tobytes() for part in (found, wanted))
    return _Difference(piece.start + at + byte, *values)


def _named(job: Job, index: int, array: DeviceArray) -> str:
    """Return the name of an array in messages: which of several outputs, too."""
    which = f", {array.name}" if sum(each.is_written for each in job.arrays) > 1 else ""
    return f"{job.name}, buffer {index}{which}"


def _wrong(job: Job, rotation: Rotation, array: DeviceArray, found: _Difference) -> WrongOutputError:
    """Say what differs in an array."""
    index, byte = divmod(found.byte, rotation.pitch(array))
    name, behind = _named(job, index, array), byte - array.nbytes
    if array.is_written and behind >= 0:
        return WrongOutputError(verification.behind_the_end(name, behind))
    written = f"{job.name}, buffer {index}: wrote to {array.name}"
    if behind >= 0:
        return WrongOutputError(f"{written}, first {behind} bytes behind its end")
    where = [int(axis) for axis in np.unravel_index(byte // np.dtype(array.dtype).itemsize, array.shape)]
    if array.is_written:
        return WrongOutputError(verification.differs(name, where, found.found, found.wanted))
    values = f"{found.found.hex()}, it was {found.wanted.hex()} (bytes in memory order)"
    return WrongOutputError(f"{written}, which no kernel may: its element {where} is {values}")


def _check_near(job: Job, rotation: Rotation, array: DeviceArray, reference: Bytes | None) -> None:
    """Read outputs back, and compare them within their bound, or their guards alone where nothing is expected."""
    guard = buffers.pitch(array.nbytes) - array.nbytes
    expected = None if reference is None else reference.view(np.float64).reshape(array.shape)
    for index in range(rotation.sets):
        read, name = partial(rotation.read, array, index), _named(job, index, array)
        if expected is None:
            verification.check_guard(name, array.nbytes, guard, read)
        else:
            verification.check_near(name, expected, guard, read, Near(array.dtype, array.ulp or 0.0))
