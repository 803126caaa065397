"""Device buffers that rotate, so that no launch finds its data in the L2 cache.

Launch i uses set i mod k of k sets. A set is a launch's arrays. All sets together are at least three times as large as
the L2, so by the time a set is used again, the others have displaced it. With k = 1 the data stays in L2 if it fits.

The inputs of all sets hold the same bytes, so one reference serves all. They are filled by uploads alone: a grid of
many waves leaves a state in the context that slows short launches down (docs/evidence/times.md, "Contexts remember").
What a kernel both reads and writes is filled anew before each sample, by the same uploads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from kernelwatch.instrument import device, inputs
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.protocol import DeviceArray

#: Bytes of a rotation, as a multiple of the L2 cache's size.
L2_MULTIPLE = 3

_ALIGNMENT = 512
_GUARD = 512

#: Bytes of small inputs that are laid out on the host and uploaded at a time.
_STAGED = 8 << 20


@lru_cache
def _staging() -> Bytes:
    """Return page-locked memory, which uploads at the full speed of the bus."""
    return device.page_locked(_STAGED)


@lru_cache(maxsize=4)
def pinned_block(exact_dtype: str | None) -> Bytes:
    """Return the block that inputs repeat in page-locked memory."""
    block = inputs.block(exact_dtype)
    found = device.page_locked(len(block))
    found[:] = block
    return found


def sets_for(set_bytes: int, l2_bytes: int) -> int:
    """Return how many sets of `set_bytes` are as large as L2_MULTIPLE times the L2."""
    return max(1, -(-L2_MULTIPLE * l2_bytes // set_bytes))


def pitch(length: int) -> int:
    """Return the bytes from one buffer to the next: aligned, with a guard between."""
    return -(-(length + _GUARD) // _ALIGNMENT) * _ALIGNMENT


class Stretch(NamedTuple):
    """A part of what a commit's process writes: `length` bytes of an array from `start` on, and a guard of poison."""

    array: DeviceArray
    start: int
    length: int

    def of(self, held: Bytes) -> Bytes:
        """Return it with its guard, of all that was written."""
        return held[self.start : self.start + pitch(self.length)]


def stretches(arrays: Sequence[DeviceArray], *, is_verified: bool) -> tuple[list[Stretch], list[Stretch], int]:
    """Return how that lies in memory: what is expected of outputs, what arrays hold before a launch, and the bytes.

    What need only be near is expected as float64.
    """
    written = [each for each in arrays if each.is_written and is_verified]
    given = [each for each in arrays if each.is_given]
    lengths = [each.nbytes if each.ulp is None else 8 * math.prod(each.shape) for each in written]
    lengths += [each.nbytes for each in given]
    *starts, end = itertools.accumulate(map(pitch, lengths), initial=0)
    found = list(map(Stretch, (*written, *given), starts, lengths))
    return found[: len(written)], found[len(written) :], end


class _Side:
    """The memory of all arrays in one direction: those of a set one after another, a set after another."""

    def __init__(self, arrays: Iterable[DeviceArray], sets: int, room: int) -> None:
        self.arrays = tuple(arrays)
        #: Bytes of each with the guard behind it.
        self.lengths = [pitch(each.nbytes) for each in self.arrays]
        *self.starts, self.pitch = itertools.accumulate(self.lengths, initial=0)
        self.room = max(sets * self.pitch, pitch(room))
        self.memory: Any = None


class Rotation:
    """Arrays of a launch on the device, in sets; inputs are filled, outputs hold anything until they are poisoned.

    Outputs together, and inputs together, have `room` for what a control copies. `given` are the bytes of arrays that
    repeat no block, by name, each with its guard. The memory is from `allocate`, used as `device.allocate`, which it is
    if not given. Raises NotImplementedError if the buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        arrays: Sequence[DeviceArray],
        sets: int,
        room: int = 0,
        given: Mapping[str, Bytes] = MappingProxyType({}),
        allocate: Callable[..., list[Any]] | None = None,
    ) -> None:
        self.arrays, self.sets, self.given = tuple(arrays), sets, given
        self._written, self._read = self._sides = [
            _Side((each for each in arrays if each.is_written is side), sets, room) for side in (True, False)
        ]
        memories = (allocate or device.allocate)(*(each.room for each in self._sides))
        #: Array's name -> its address in the first set, and the bytes to that of the next.
        self._places: dict[str, tuple[int, int]] = {}
        for side, memory in zip(self._sides, memories, strict=True):
            side.memory = memory
            for array, start in zip(side.arrays, side.starts, strict=True):
                self._places[array.name] = int(side.memory) + start, side.pitch
        self._fill(self._read)

    def _fill(self, side: _Side) -> None:
        """Fill the arrays of all sets by uploads, many sets of small ones at a time: outputs with poison if small."""
        if side.pitch > _STAGED:
            for index, array in itertools.product(range(self.sets), side.arrays):
                self._upload(array, self.address(array, index))
        elif side.pitch:
            together = min(_STAGED // side.pitch, self.sets)
            staged = _staging()[: together * side.pitch]
            for array, start, length in zip(side.arrays, side.starts, side.lengths, strict=True):
                content: Bytes | int = POISON
                if array.is_given or not array.is_written:
                    content = self.given[array.name] if array.is_given else array.repeated(length)
                staged.reshape(together, side.pitch)[:, start : start + length] = content
            for index in range(0, self.sets, together):
                count = min(together, self.sets - index)
                device.cuda.memcpy_htod(int(side.memory) + index * side.pitch, staged[: count * side.pitch])

    def _upload(self, array: DeviceArray, address: int) -> None:
        """Fill a large array, one that repeats a block a piece of it at a time; nothing of an output."""
        if array.is_given:
            device.cuda.memcpy_htod(address, self.given[array.name])
        elif not array.is_written:
            block, done, length = pinned_block(array.exact_dtype), 0, pitch(array.nbytes)
            while done < length:
                begin = (array.begin + done) % len(block)
                piece = block[begin : begin + length - done]
                device.cuda.memcpy_htod(address + done, piece)
                done += len(piece)

    def restore(self) -> None:
        """Give arrays that are both read and written what they held at first."""
        if any(each.direction == "in and out" for each in self.arrays):
            self._fill(self._written)

    def poison(self, *, by_upload: bool = False) -> None:
        """Fill all outputs and their guards with POISON; by uploads where no grid may run."""
        outputs, room = int(self._written.memory), self._written.room
        if by_upload:
            poison = _staging()
            poison[:] = POISON
            for start in range(0, room, len(poison)):
                device.cuda.memcpy_htod(outputs + start, poison[: room - start])
        else:
            device.cuda.memset_d8(outputs, POISON, room)
        self.restore()

    def free(self) -> None:
        """Give the memory back."""
        for side in self._sides:
            side.memory.free()

    def pitch(self, array: DeviceArray) -> int:
        """Return the bytes from an array of a set to that of the next."""
        return self._places[array.name][1]

    def address(self, array: DeviceArray, index: int) -> int:
        """Return the device address of an array of launch `index`."""
        first, pitch = self._places[array.name]
        return first + index % self.sets * pitch

    def addresses(self, index: int) -> tuple[int, ...]:
        """Return the device addresses of launch `index`."""
        return tuple(self.address(each, index) for each in self.arrays)

    def slices(self, length: int) -> list[tuple[int, int]]:
        """Return the device addresses (output, input) of stretches of `length` bytes, as many as the memory holds.

        They lie one after another, without regard to the buffers there.
        """
        count = min(side.room for side in self._sides) // pitch(length)
        output, read = (int(side.memory) for side in self._sides)
        return [(output + start, read + start) for start in range(0, count * pitch(length), pitch(length))]

    def read(self, array: DeviceArray, index: int, start: int, into: Any) -> None:
        """Copy an array of launch `index` and its guard, from byte `start` on, into a host array."""
        device.cuda.memcpy_dtoh(into, self.address(array, index) + start)
