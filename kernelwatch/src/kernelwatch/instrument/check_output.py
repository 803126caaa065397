"""Compares outputs with their references on the device, and inputs with what was uploaded, bit for bit.

Both with the guards behind them. A changed input is found after any number of launches, unless each launch undoes what
the one before it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, device, helper_kernels, tolerance
from kernelwatch.instrument.buffers import Rotation, Stretch
from kernelwatch.instrument.graph_replay import once
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.protocol import DeviceArray, Job
from kernelwatch.instrument.tolerance import Near, WrongOutputError

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


def check(
    job: Job,
    rotation: Rotation,
    expected: Callable[[], Bytes] | None,
    on_device: Callable[[], int | None] = lambda: None,
) -> None:
    """Compare every input of a rotation with what was uploaded, and every output with the reference.

    The job was launched on each set. The reference holds, where an output must be equal, its bytes and the guard's;
    where it need only be near, its elements as float64. Without a reference, only guards are looked at.

    Parameters
    ----------
    job : Job
        What was launched.
    rotation : Rotation
        Its buffers.
    expected : callable or None
        Returns what outputs must hold, as `stretches` lays it out, on the host.
    on_device : callable
        Returns its address on the device, or None if it is not kept there.

    Raises
    ------
    WrongOutputError
        At the first element that differs, with its index, the value found and the value expected.
    """
    outputs, _, _ = buffers.stretches(job.arrays, is_verified=True)
    (result,) = device.allocate(helper_kernels.WIDTH)
    try:
        comparison = _Comparison(job, rotation, result)
        comparison.inputs()
        for stretch in outputs:
            if expected is None:
                comparison.guards(stretch.array)
            elif stretch.array.ulp is not None:
                comparison.near(stretch.array, expected()[stretch.start :][: stretch.length])
            else:
                comparison.output(stretch, expected, on_device())
    finally:
        result.free()


@contextmanager
def _uploaded(content: Bytes) -> Iterator[int]:
    (uploaded,) = device.allocate(len(content))
    try:
        device.cuda.memcpy_htod(uploaded, content)
        yield int(uploaded)
    finally:
        uploaded.free()


class _Comparison:
    """Compares arrays of a job that was launched on each set of a rotation; `result` is memory for one element."""

    def __init__(self, job: Job, rotation: Rotation, result: Any) -> None:
        self._job, self._rotation, self._result = job, rotation, result

    def inputs(self) -> None:
        """Compare every input with its content, or the block that it repeats, of which what is needed is uploaded."""
        read = [each for each in self._job.arrays if not each.is_written]
        for dtype in dict.fromkeys(each.exact_dtype for each in read if not each.is_given):
            mine = [each for each in read if not each.is_given and each.exact_dtype == dtype]
            ends = (each.begin + buffers.pitch(each.nbytes) for each in mine)
            block = buffers.pinned_block(dtype)[: max(ends)]
            with _uploaded(block) as address:
                for array in mine:
                    for piece in self._repeats(array, address, len(block)):
                        self._compare(array, piece)
        for array in read:
            if array.is_given:
                given = self._rotation.given[array.name]
                with _uploaded(given) as address:
                    self._compare(array, self._in_all_sets(array, 0, len(given), address))

    def output(self, stretch: Stretch, expected: Callable[[], Bytes], on_device: int | None) -> None:
        """Compare an output with a reference: whole if it is kept on the device, else a part at a time."""
        if on_device is not None:
            length = buffers.pitch(stretch.length)
            self._compare(stretch.array, self._in_all_sets(stretch.array, 0, length, on_device + stretch.start))
            return
        held = stretch.of(expected())
        for start in range(0, len(held), _PIECE):
            part = held[start : start + _PIECE]
            with _uploaded(part) as address:
                self._compare(stretch.array, self._in_all_sets(stretch.array, start, len(part), address))

    def guards(self, array: DeviceArray) -> None:
        """Read what lies behind an output in all sets, of which nothing else is known."""
        for index in range(self._rotation.sets):
            read = partial(self._rotation.read, array, index)
            guard = buffers.pitch(array.nbytes) - array.nbytes
            tolerance.check_guard(self._named(index, array), array.nbytes, guard, read)

    def near(self, array: DeviceArray, reference: Bytes) -> None:
        """Read an output back from all sets, and compare it within its bound."""
        expected = reference.view(np.float64).reshape(array.shape)
        for index in range(self._rotation.sets):
            read = partial(self._rotation.read, array, index)
            guard, near = buffers.pitch(array.nbytes) - array.nbytes, Near(array.dtype, array.ulp or 0.0)
            tolerance.check_near(self._named(index, array), expected, guard, read, near)

    def _in_all_sets(self, array: DeviceArray, start: int, length: int, address: int) -> _Piece:
        return _Piece(start, length, address, self._rotation.sets, self._rotation.pitch(array))

    def _repeats(self, array: DeviceArray, block: int, period: int) -> Iterator[_Piece]:
        """Yield what an input holds: a part of the block, or in each set its end, it some times, and its beginning."""
        begin, length, pitch = array.begin, buffers.pitch(array.nbytes), self._rotation.pitch(array)
        if begin + length <= period:
            yield self._in_all_sets(array, 0, length, block + begin)
            return
        for start in range(0, self._rotation.sets * pitch, pitch):
            head = period - begin
            times, rest = divmod(length - head, period)
            yield _Piece(start, head, block + begin, 1, head)
            if times:
                yield _Piece(start + head, period, block, times, period)
            if rest:
                yield _Piece(start + length - rest, rest, block, 1, rest)

    def _compare(self, array: DeviceArray, piece: _Piece) -> None:
        """Compare the memory from an array of the first set on with what it must hold."""
        device.cuda.memcpy_htod(self._result, np.array([_NONE]))
        size, pitch = piece.length // helper_kernels.WIDTH, piece.pitch // helper_kernels.WIDTH
        compare = helper_kernels.load(helper_kernels.COMPARE, size=size, sets=piece.times, pitch=pitch)
        stream, first = device.cuda.Stream(), self._rotation.address(array, 0) + piece.start
        given = compare.given(int(self._result), first, piece.address)
        once(lambda: compare(stream, given), stream)
        place = np.empty(1, np.uint64)
        device.cuda.memcpy_dtoh(place, self._result)
        if place[0] == _NONE:
            return
        at = int(place[0]) * helper_kernels.WIDTH
        found, wanted = (np.empty(helper_kernels.WIDTH, np.uint8) for _ in range(2))
        device.cuda.memcpy_dtoh(found, first + at)
        device.cuda.memcpy_dtoh(wanted, piece.address + at % piece.pitch)
        byte, itemsize = int(np.flatnonzero(found != wanted)[0]), np.dtype(array.dtype).itemsize
        element = slice(byte // itemsize * itemsize, (byte // itemsize + 1) * itemsize)
        raise self._wrong(array, piece.start + at + byte, found[element].tobytes(), wanted[element].tobytes())

    def _named(self, index: int, array: DeviceArray) -> str:
        """Return the name of an array in messages: which of several outputs, too."""
        which = f", {array.name}" if sum(each.is_written for each in self._job.arrays) > 1 else ""
        return f"{self._job.name}, buffer {index}{which}"

    def _wrong(self, array: DeviceArray, byte: int, found: bytes, wanted: bytes) -> WrongOutputError:
        """Say what an array holds in the element of a byte of all sets, and must hold there."""
        index, byte = divmod(byte, self._rotation.pitch(array))
        name, behind = self._named(index, array), byte - array.nbytes
        if array.is_written and behind >= 0:
            return WrongOutputError(tolerance.behind_the_end(name, behind))
        written = f"{self._job.name}, buffer {index}: wrote to {array.name}"
        if behind >= 0:
            return WrongOutputError(f"{written}, first {behind} bytes behind its end")
        where = [int(axis) for axis in np.unravel_index(byte // np.dtype(array.dtype).itemsize, array.shape)]
        if array.is_written:
            return WrongOutputError(tolerance.differs(name, where, found, wanted))
        values = f"{found.hex()}, it was {wanted.hex()} (bytes in memory order)"
        return WrongOutputError(f"{written}, which no kernel may: its element {where} is {values}")
