"""Device buffers that rotate, so that no launch finds its data in the L2 cache.

Launch i uses set i mod k of k sets; a set has all arrays of a launch. All sets together are at least three times as
large as the L2, so the L2 has lost a set before the set is used again. A job whose data should stay in the L2 has one
set.

The inputs of all sets have the same bytes, so one reference suffices. Only uploads fill them, because a grid of many
waves would slow down later short launches in the context (docs/evidence/times.md, "Contexts remember"). Arrays that a
kernel both reads and writes are uploaded again before each sample.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from kernelwatch.instrument import device, inputs
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.job_messages import DeviceArray

#: Minimum bytes of all sets together, as a multiple of the L2 cache's size.
L2_MULTIPLE = 3

_ALIGNMENT = 512
_GUARD = 512

#: Bytes of the host buffer in which small inputs are gathered for one upload.
_STAGING_BYTES = 8 << 20


@lru_cache
def _staging_buffer() -> Bytes:
    return device.allocate_page_locked(_STAGING_BYTES)


@lru_cache(maxsize=4)
def pin_block(exact_dtype: str | None) -> Bytes:
    """Return the bytes of `inputs.input_block`, in page-locked host memory."""
    block = inputs.input_block(exact_dtype)
    pinned = device.allocate_page_locked(len(block))
    pinned[:] = block
    return pinned


def count_sets(set_bytes: int, l2_bytes: int) -> int:
    """Return the number of sets, of `set_bytes` each, that together have at least L2_MULTIPLE times the L2's bytes."""
    return max(1, -(-L2_MULTIPLE * l2_bytes // set_bytes))


def pad_length(length: int) -> int:
    """Return the bytes of a buffer of `length` bytes with its guard, rounded up to the alignment of the next buffer."""
    return -(-(length + _GUARD) // _ALIGNMENT) * _ALIGNMENT


class ReferencePart(NamedTuple):
    """The place of an array in a reference's memory: `length` bytes from byte `start` on. Its guard follows."""

    array: DeviceArray
    start: int
    length: int

    def view_in(self, memory: Bytes) -> Bytes:
        """Return a view of the array and its guard in a reference's memory."""
        return memory[self.start : self.start + pad_length(self.length)]


class ReferenceLayout(NamedTuple):
    """The parts of a reference, expected outputs first, then contents before a launch; and its length in bytes."""

    outputs: list[ReferencePart]
    prefilled: list[ReferencePart]
    length: int


def lay_out_reference(arrays: Sequence[DeviceArray], *, is_verified: bool) -> ReferenceLayout:
    """Return the layout of a launch's reference; its expected outputs are float64 if they have a tolerance.

    Unless `is_verified`, there are no expected outputs.
    """
    outputs = [array for array in arrays if array.is_written and is_verified]
    prefilled = [array for array in arrays if array.is_prefilled]
    lengths = [array.nbytes if array.ulp is None else 8 * math.prod(array.shape) for array in outputs]
    lengths += [array.nbytes for array in prefilled]
    *starts, total_length = itertools.accumulate(map(pad_length, lengths), initial=0)
    parts = list(map(ReferencePart, (*outputs, *prefilled), starts, lengths))
    return ReferenceLayout(parts[: len(outputs)], parts[len(outputs) :], total_length)


class _ArrayGroup:
    """The memory of all inputs, or of all outputs: set after set, in at least `room` bytes."""

    def __init__(self, arrays: Sequence[DeviceArray], sets: int, room: int) -> None:
        self.arrays = arrays
        self.lengths = [pad_length(array.nbytes) for array in self.arrays]
        *self.starts, self.pitch = itertools.accumulate(self.lengths, initial=0)
        self.room = max(sets * self.pitch, pad_length(room))
        self.memory: Any = None


class Rotation:
    """Arrays of a launch on the device, in sets. Inputs are filled; outputs are undefined until they are poisoned.

    All outputs together have at least `room` bytes, for the timed copy; so have all inputs. `contents` has the bytes,
    with guards, of prefilled arrays. `allocate` defaults to `device.allocate`. Raises NotImplementedError if the
    buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        arrays: Sequence[DeviceArray],
        sets: int,
        room: int = 0,
        contents: Mapping[str, Bytes] = MappingProxyType({}),
        allocate: Callable[..., list[Any]] | None = None,
    ) -> None:
        self.arrays, self.sets, self.contents = tuple(arrays), sets, contents
        self._outputs = _ArrayGroup([array for array in arrays if array.is_written], sets, room)
        self._inputs = _ArrayGroup([array for array in arrays if not array.is_written], sets, room)
        self._groups = [self._outputs, self._inputs]
        memories = (allocate or device.allocate)(*(group.room for group in self._groups))
        #: Array's name -> its address in the first set, and the distance in bytes to the next set.
        self._addresses: dict[str, tuple[int, int]] = {}
        for group, memory in zip(self._groups, memories, strict=True):
            group.memory = memory
            for array, start in zip(group.arrays, group.starts, strict=True):
                self._addresses[array.name] = int(group.memory) + start, group.pitch
        self._fill_sets(self._inputs)

    def _fill_sets(self, group: _ArrayGroup) -> None:
        """Upload the contents of all sets, many small sets at a time. This also poisons outputs in small sets."""
        if group.pitch > _STAGING_BYTES:
            for index, array in itertools.product(range(self.sets), group.arrays):
                self._upload(array, self.address(array, index))
        elif group.pitch:
            sets_at_once = min(_STAGING_BYTES // group.pitch, self.sets)
            staged = _staging_buffer()[: sets_at_once * group.pitch]
            for array, start, length in zip(group.arrays, group.starts, group.lengths, strict=True):
                content: Bytes | int = POISON
                if array.is_prefilled:
                    content = self.contents[array.name]
                elif not array.is_written:
                    content = array.repeat_block(length)
                staged.reshape(sets_at_once, group.pitch)[:, start : start + length] = content
            for index in range(0, self.sets, sets_at_once):
                count = min(sets_at_once, self.sets - index)
                device.cuda.memcpy_htod(int(group.memory) + index * group.pitch, staged[: count * group.pitch])

    def _upload(self, array: DeviceArray, address: int) -> None:
        """Upload an array's content before a launch, if it has one."""
        if array.is_prefilled:
            device.cuda.memcpy_htod(address, self.contents[array.name])
        elif not array.is_written:
            block, uploaded, length = pin_block(array.exact_dtype), 0, pad_length(array.nbytes)
            while uploaded < length:
                offset = (array.block_offset + uploaded) % len(block)
                piece = block[offset : offset + length - uploaded]
                device.cuda.memcpy_htod(address + uploaded, piece)
                uploaded += len(piece)

    def restore_inputs(self) -> None:
        """Upload again the contents of the arrays that are both read and written, if any."""
        if any(array.direction == "in and out" for array in self.arrays):
            self._fill_sets(self._outputs)

    def poison_outputs(self, *, by_upload: bool = False) -> None:
        """Fill all outputs and their guards with POISON, then call `restore_inputs`.

        With `by_upload`, no grid is launched.
        """
        outputs, room = int(self._outputs.memory), self._outputs.room
        if by_upload:
            poison = _staging_buffer()
            poison[:] = POISON
            for start in range(0, room, len(poison)):
                device.cuda.memcpy_htod(outputs + start, poison[: room - start])
        else:
            device.cuda.memset_d8(outputs, POISON, room)
        self.restore_inputs()

    def free(self) -> None:
        """Free the memory."""
        for group in self._groups:
            group.memory.free()

    def set_pitch(self, array: DeviceArray) -> int:
        """Return the distance in bytes from an array in one set to the same array in the next set."""
        return self._addresses[array.name][1]

    def address(self, array: DeviceArray, index: int) -> int:
        """Return the device address of an array of launch `index`."""
        first, pitch = self._addresses[array.name]
        return first + index % self.sets * pitch

    def addresses(self, index: int) -> tuple[int, ...]:
        """Return the device addresses of launch `index`."""
        return tuple(self.address(array, index) for array in self.arrays)

    def slices(self, length: int) -> list[tuple[int, int]]:
        """Divide the memory into slices of `length` bytes, regardless of arrays; return (output, input) addresses."""
        pitch = pad_length(length)
        count = min(group.room for group in self._groups) // pitch
        output_address, input_address = (int(group.memory) for group in self._groups)
        return [(output_address + index * pitch, input_address + index * pitch) for index in range(count)]

    def read_array(self, array: DeviceArray, index: int, start: int, target: Any) -> None:
        """Fill a host array with the bytes of an array of launch `index` and its guard, from byte `start` on."""
        device.cuda.memcpy_dtoh(target, self.address(array, index) + start)
