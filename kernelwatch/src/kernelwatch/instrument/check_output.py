"""Compare outputs with their references, and inputs with the uploaded bytes; check the guards of both.

Outputs with a tolerance, and guards without a reference, are read back and compared on the host. All else is compared
on the device.

A changed input is detected after any number of launches, unless a later launch undoes the change.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, device, helper_kernels, tolerance
from kernelwatch.instrument.buffers import ReferencePart, Rotation
from kernelwatch.instrument.graph_replay import run_once
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import DeviceArray, Job
from kernelwatch.instrument.tolerance import UlpTolerance, WrongOutputError
from kernelwatch.kernel.arguments import to_dtype

#: Bytes to upload and compare at a time, if the reference is not stored on the device.
_PIECE_BYTES = 64 << 20

_NO_DIFFERENCE = np.uint64(2**64 - 1)


class _ExpectedPiece(NamedTuple):
    """Expected bytes of an array: the `length` bytes at the device address `address`.

    The array must have them `times` times, `pitch` bytes apart, from byte `start` on. Byte 0 is the array's first byte
    in the first set.
    """

    start: int
    length: int
    address: int
    times: int
    pitch: int


def check_job_output(
    job: Job,
    rotation: Rotation,
    expected: Callable[[], Bytes] | None,
    on_device: Callable[[], int | None] | None = None,
) -> None:
    """Compare every input of a rotation with the uploaded bytes, and every output with the reference.

    The job must have been launched on each set. The reference has the bytes of an output and its guard, or float64
    elements for an output with a tolerance. If `expected` is None, only guards of outputs are checked, not their bytes.

    Parameters
    ----------
    job : Job
        The launched job.
    rotation : Rotation
        The job's buffers.
    expected : callable or None
        Returns the reference in host memory, in the layout of `lay_out_reference`.
    on_device : callable, optional
        Returns the reference's address on the device, or None if the device does not store the reference.

    Raises
    ------
    WrongOutputError
        At the first wrong element of an output, the first change of an input, or the first write past the end of an
        array.
    NotImplementedError
        The device has too little free memory for the comparison.
    """
    outputs = buffers.lay_out_reference(job.arrays, is_verified=True).outputs
    (result,) = device.allocate(helper_kernels.WIDTH)
    try:
        comparison = _OutputComparison(job, rotation, result)
        comparison.check_inputs()
        for part in outputs:
            if expected is None:
                comparison.check_guards(part.array)
            elif part.array.ulp is not None:
                comparison.check_near(part.array, expected()[part.start :][: part.length])
            else:
                comparison.check_output(part, expected, on_device() if on_device else None)
    finally:
        result.free()


@contextmanager
def _upload_temporarily(content: Bytes) -> Iterator[int]:
    (uploaded,) = device.allocate(len(content))
    try:
        device.cuda.memcpy_htod(uploaded, content)
        yield int(uploaded)
    finally:
        uploaded.free()


class _OutputComparison:
    """Compares a job's arrays in all sets, and raises WrongOutputError at the first difference.

    `result` is device memory for the index of this difference.
    """

    def __init__(self, job: Job, rotation: Rotation, result: Any) -> None:
        self._job, self._rotation, self._result = job, rotation, result

    def check_inputs(self) -> None:
        input_arrays = [array for array in self._job.arrays if not array.is_written]
        repeating = [array for array in input_arrays if not array.is_prefilled]
        for dtype in dict.fromkeys(array.exact_dtype for array in repeating):
            same_block = [array for array in repeating if array.exact_dtype == dtype]
            ends = (array.block_offset + buffers.pad_length(array.nbytes) for array in same_block)
            block = buffers.pin_block(dtype)[: max(ends)]
            with _upload_temporarily(block) as address:
                for array in same_block:
                    for piece in self._iter_block_pieces(array, address, len(block)):
                        self._check_piece(array, piece)
        for array in input_arrays:
            if array.is_prefilled:
                content = self._rotation.contents[array.name]
                with _upload_temporarily(content) as address:
                    self._check_piece(array, self._piece_in_all_sets(array, 0, len(content), address))

    def check_output(self, part: ReferencePart, expected: Callable[[], Bytes], on_device: int | None) -> None:
        """Compare an output with the reference, bit for bit.

        `on_device` is the reference's address on the device. If it is None, the reference is uploaded in pieces.
        """
        if on_device is not None:
            length = buffers.pad_length(part.length)
            self._check_piece(part.array, self._piece_in_all_sets(part.array, 0, length, on_device + part.start))
            return
        reference = part.view_in(expected())
        for start in range(0, len(reference), _PIECE_BYTES):
            piece = reference[start : start + _PIECE_BYTES]
            with _upload_temporarily(piece) as address:
                self._check_piece(part.array, self._piece_in_all_sets(part.array, start, len(piece), address))

    def check_guards(self, array: DeviceArray) -> None:
        for index in range(self._rotation.sets):
            read_bytes = partial(self._rotation.read_array, array, index)
            guard = buffers.pad_length(array.nbytes) - array.nbytes
            tolerance.check_guard(self._describe_array(index, array), array.nbytes, guard, read_bytes)

    def check_near(self, array: DeviceArray, reference: Bytes) -> None:
        expected = reference.view(np.float64).reshape(array.shape)
        for index in range(self._rotation.sets):
            read_bytes = partial(self._rotation.read_array, array, index)
            guard, name = buffers.pad_length(array.nbytes) - array.nbytes, self._describe_array(index, array)
            ulp_tolerance = UlpTolerance(array.dtype, array.ulp or 0.0)
            tolerance.check_within_tolerance(name, expected, guard, read_bytes, ulp_tolerance)

    def _piece_in_all_sets(self, array: DeviceArray, start: int, length: int, address: int) -> _ExpectedPiece:
        return _ExpectedPiece(start, length, address, self._rotation.sets, self._rotation.set_pitch(array))

    def _iter_block_pieces(self, array: DeviceArray, block: int, period: int) -> Iterator[_ExpectedPiece]:
        """Yield the expected pieces of an input that repeats a block of `period` bytes at the device address `block`.

        An input within one block is one piece. Any other has, in each set, the end of a block; then, if it is long
        enough, whole blocks and the beginning of a block.
        """
        offset, length, pitch = array.block_offset, buffers.pad_length(array.nbytes), self._rotation.set_pitch(array)
        if offset + length <= period:
            yield self._piece_in_all_sets(array, 0, length, block + offset)
            return
        for start in range(0, self._rotation.sets * pitch, pitch):
            head = period - offset
            repetitions, remainder = divmod(length - head, period)
            yield _ExpectedPiece(start, head, block + offset, 1, head)
            if repetitions:
                yield _ExpectedPiece(start + head, period, block, repetitions, period)
            if remainder:
                yield _ExpectedPiece(start + length - remainder, remainder, block, 1, remainder)

    def _check_piece(self, array: DeviceArray, piece: _ExpectedPiece) -> None:
        device.cuda.memcpy_htod(self._result, np.array([_NO_DIFFERENCE]))
        size, pitch = piece.length // helper_kernels.WIDTH, piece.pitch // helper_kernels.WIDTH
        compare = helper_kernels.load_helper(helper_kernels.COMPARE, size=size, sets=piece.times, pitch=pitch)
        stream, first = device.cuda.Stream(), self._rotation.address(array, 0) + piece.start
        arguments = compare.pack_addresses(int(self._result), first, piece.address)
        run_once(lambda: compare(stream, arguments), stream)
        first_difference = np.empty(1, np.uint64)
        device.cuda.memcpy_dtoh(first_difference, self._result)
        if first_difference[0] == _NO_DIFFERENCE:
            return
        word = int(first_difference[0]) * helper_kernels.WIDTH
        actual, expected = self._read_bytes(array, piece, word, word + helper_kernels.WIDTH)
        byte = word + int(np.flatnonzero(actual != expected)[0])
        # The element, or the part of it that lies in the same repetition of the expected bytes.
        repetition, itemsize = byte - byte % piece.pitch, to_dtype(array.dtype).itemsize
        element = byte - (piece.start + byte) % self._rotation.set_pitch(array) % itemsize
        begin, end = max(element, repetition), min(element + itemsize, repetition + piece.length)
        actual, expected = self._read_bytes(array, piece, begin, end)
        raise self._make_error(array, piece.start + byte, actual.tobytes(), expected.tobytes())

    def _read_bytes(self, array: DeviceArray, piece: _ExpectedPiece, begin: int, end: int) -> tuple[Bytes, Bytes]:
        """Return the actual and the expected bytes from `begin` to `end`, which lie in one repetition of a piece."""
        actual, expected = np.empty(end - begin, np.uint8), np.empty(end - begin, np.uint8)
        self._rotation.read_array(array, 0, piece.start + begin, actual)
        device.cuda.memcpy_dtoh(expected, piece.address + begin % piece.pitch)
        return actual, expected

    def _describe_array(self, index: int, array: DeviceArray) -> str:
        suffix = f", {array.name}" if sum(other_array.is_written for other_array in self._job.arrays) > 1 else ""
        return f"{self._job.name}, buffer {index}{suffix}"

    def _make_error(self, array: DeviceArray, byte: int, actual: bytes, expected: bytes) -> WrongOutputError:
        """Return the error for a wrong byte. `byte` counts from the array's first byte in the first set."""
        index, byte = divmod(byte, self._rotation.set_pitch(array))
        name, distance = self._describe_array(index, array), byte - array.nbytes
        if array.is_written and distance >= 0:
            return WrongOutputError(tolerance.format_overrun(name, distance))
        message = f"{self._job.name}, buffer {index}: wrote to {array.name}"
        if distance >= 0:
            return WrongOutputError(f"{message}, past its end; the first wrong byte is {distance} bytes after the end")
        index_in_array = [int(axis) for axis in np.unravel_index(byte // to_dtype(array.dtype).itemsize, array.shape)]
        if array.is_written:
            return WrongOutputError(tolerance.format_difference(name, index_in_array, actual, expected))
        values = f"{actual.hex()}, it was {expected.hex()} (bytes in memory order)"
        return WrongOutputError(f"{message}, which is an input: element {index_in_array} is {values}")
