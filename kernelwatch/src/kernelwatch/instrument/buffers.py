"""Device buffers that rotate, so that no launch finds its data in the L2 cache.

Launch i uses set i mod k of k sets. A set is an output and its inputs. All sets together are at least three times as
large as the L2, so by the time a set is used again, the others have displaced it. With k = 1 the data stays in L2 if it
fits.

The inputs of all sets hold the same bytes, so one reference serves all. They are filled by uploads alone: a grid of
many waves leaves a state in the context that slows short launches down (docs/evidence/log.md, "A context remembers").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from kernelwatch.instrument import device, inputs
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.poison import POISON

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


class Rotation:
    """Input and output buffers on the device; inputs are filled, outputs hold anything until they are poisoned.

    Parameters
    ----------
    output_bytes : int
        Bytes of one output.
    input_bytes : sequence of int
        Bytes of each input of a launch.
    sets : int
        How many sets there are.
    room : int
        Bytes that the outputs together, and the inputs together, hold at least: what a control copies.
    exact_dtype : str, optional
        The dtype of inputs whose values are exact; inputs are random bits if not given.
    allocate : callable, optional
        Where the memory comes from; used as `device.allocate`, which it is if not given.

    Raises
    ------
    NotImplementedError
        The buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        output_bytes: int,
        input_bytes: Sequence[int],
        sets: int,
        room: int = 0,
        exact_dtype: str | None = None,
        allocate: Callable[..., list[Any]] | None = None,
    ) -> None:
        self.sets = sets
        self.output_bytes = output_bytes
        self.input_bytes = tuple(input_bytes)
        self.output_pitch = pitch(output_bytes)
        #: Bytes of each input with the guard behind it, which continues the input.
        self.filled_bytes = tuple(map(pitch, input_bytes))
        *self._starts, self.input_pitch = itertools.accumulate(self.filled_bytes, initial=0)
        least = pitch(room)
        self._output_room, self._input_room = (
            max(sets * each, least) for each in (self.output_pitch, self.input_pitch)
        )
        self._outputs, self._inputs = (allocate or device.allocate)(self._output_room, self._input_room)
        if self.input_pitch <= _STAGED:
            self._upload_many_sets(exact_dtype)
        else:
            self._upload_pieces(exact_dtype)

    def _upload_many_sets(self, exact_dtype: str | None) -> None:
        """Fill small inputs, many sets at a time."""
        period = self.input_pitch
        if not period:
            return
        together = min(_STAGED // period, self.sets)
        staged = _staging()[: together * period]
        held = zip(self._starts, self.filled_bytes, host_inputs(self.filled_bytes, exact_dtype), strict=True)
        for start, length, content in held:
            staged.reshape(together, period)[:, start : start + length] = content
        for index in range(0, self.sets, together):
            count = min(together, self.sets - index)
            device.cuda.memcpy_htod(int(self._inputs) + index * period, staged[: count * period])

    def _upload_pieces(self, exact_dtype: str | None) -> None:
        """Fill large inputs, a piece of the block at a time."""
        block = pinned_block(exact_dtype)
        for index, (place, length) in itertools.product(range(self.sets), enumerate(self.filled_bytes)):
            address, done = self.inputs(index)[place], 0
            while done < length:
                begin = (inputs.start(place) + done) % len(block)
                piece = block[begin : begin + length - done]
                device.cuda.memcpy_htod(address + done, piece)
                done += len(piece)

    def poison(self, *, by_upload: bool = False) -> None:
        """Fill all outputs and their guards with POISON; by uploads where no grid may run."""
        if not by_upload:
            device.cuda.memset_d8(int(self._outputs), POISON, self._output_room)
            return
        poison = _staging()
        poison[:] = POISON
        for start in range(0, self._output_room, len(poison)):
            device.cuda.memcpy_htod(int(self._outputs) + start, poison[: self._output_room - start])

    def free(self) -> None:
        """Give the memory back."""
        for allocation in (self._outputs, self._inputs):
            allocation.free()

    def output(self, index: int) -> int:
        """Return the device address of the output of launch `index`."""
        return int(self._outputs) + index % self.sets * self.output_pitch

    def inputs(self, index: int) -> list[int]:
        """Return the device addresses of the inputs of launch `index`."""
        return [int(self._inputs) + index % self.sets * self.input_pitch + start for start in self._starts]

    def slices(self, length: int) -> int:
        """Return how many stretches of `length` bytes all inputs, or all outputs, hold one after another.

        Raises
        ------
        ValueError
            The memory does not hold a single stretch.
        """
        held = min(self._output_room, self._input_room) // pitch(length)
        if held == 0:
            raise ValueError(f"buffers of {self._output_room} and {self._input_room} bytes hold no {length} bytes")
        return held

    def slice(self, index: int, length: int) -> tuple[int, int]:
        """Return device addresses (output, input) of stretch `index`, without regard to the buffers in the memory."""
        start = index * pitch(length)
        return int(self._outputs) + start, int(self._inputs) + start

    def read_output(self, index: int, start: int, into: Any) -> None:
        """Copy the output of launch `index` and its guard, from byte `start` on, into a host array."""
        device.cuda.memcpy_dtoh(into, self.output(index) + start)


def host_inputs(input_bytes: Sequence[int], exact_dtype: str | None) -> list[Bytes]:
    """Return what the inputs of every set of a rotation hold."""
    block = inputs.block(exact_dtype)
    return [inputs.repeated(block, inputs.start(place), length) for place, length in enumerate(input_bytes)]
