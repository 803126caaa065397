"""Device buffers that rotate, so that no launch finds its data in the L2 cache.

Launch i uses pair i mod k of k input and output buffers, with k times their bytes at least three times the L2: by
the time a pair comes round again, the others have pushed it out. With k = 1 the data stays in L2 if it fits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instruments import device, threads
from benchmarks.instruments.poison import POISON

#: Bytes that a rotation goes through, in L2 sizes.
L2_MULTIPLE = 3

_ALIGNMENT = 512
_GUARD = 512

#: Bytes of the random block that inputs repeat; 16 x a prime, so that no row length or buffer size divides it.
_BLOCK = 16 * 2097143

Bytes = NDArray[np.uint8]


@lru_cache(maxsize=1)
def random_block() -> Bytes:
    """The random bytes that inputs repeat: real data, since zeros may move faster and hide wrong indices."""
    return np.frombuffer(np.random.default_rng(20230319).bytes(_BLOCK), dtype=np.uint8)


def input_bytes(start: int, length: int) -> Bytes:
    """The `length` bytes of input memory that begin at byte `start`, as the host knows them."""
    block = random_block()
    start %= len(block)
    if start + length <= len(block):
        return block[start : start + length]
    out = np.empty(length, dtype=np.uint8)

    def fill(first: int) -> None:
        piece = out[first : first + threads.WORTH_IT]
        begin = (start + first) % len(block)
        head = block[begin : begin + len(piece)]
        piece[: len(head)] = head
        piece[len(head) :] = block[: len(piece) - len(head)]

    threads.each(fill, range(0, length, threads.WORTH_IT))
    return out


if device.cuda is not None:
    random_block()  # made once, in asv's fork server, for all processes forked from it


def pairs_for(pair_bytes: int, l2_bytes: int) -> int:
    """How many pairs of `pair_bytes` it takes to go through L2_MULTIPLE times the L2."""
    return max(1, -(-L2_MULTIPLE * l2_bytes // pair_bytes))


class Rotation:
    """Input and output buffers on the device, filled and poisoned.

    Parameters
    ----------
    output_bytes, input_bytes : bytes of one output and one input.
    pairs : how many of each.

    Raises
    ------
    NotImplementedError : they do not fit in the device's free memory.
    """

    def __init__(self, output_bytes: int, input_bytes: int, pairs: int) -> None:
        self.pairs = pairs
        self.output_bytes = output_bytes
        self.input_bytes = input_bytes
        self.output_pitch = _pitch(output_bytes)
        self.input_pitch = _pitch(input_bytes)
        self._outputs, self._inputs = device.allocate(pairs * self.output_pitch, pairs * self.input_pitch)
        self._fill()
        self.poison()

    def _fill(self) -> None:
        """Repeat the random block over all inputs: one upload, the rest copied on the device."""
        total = self.pairs * self.input_pitch
        block = random_block()
        first = int(self._inputs)
        device.cuda.memcpy_htod(first, block[: min(total, len(block))])
        for start in range(len(block), total, len(block)):
            device.cuda.memcpy_dtod(first + start, first, min(len(block), total - start))

    def poison(self) -> None:
        """Fill all outputs and their guards with POISON."""
        device.cuda.memset_d8(self._outputs, POISON, self.pairs * self.output_pitch)

    def output(self, index: int) -> int:
        """Device address of the output of launch `index`."""
        return int(self._outputs) + index % self.pairs * self.output_pitch

    def input(self, index: int) -> int:
        """Device address of the input of launch `index`."""
        return int(self._inputs) + index % self.pairs * self.input_pitch

    def slices(self, length: int) -> int:
        """How many stretches of `length` bytes all inputs, or all outputs, hold one after another.

        Raises
        ------
        ValueError : not even one.
        """
        held = self.pairs * min(self.output_pitch, self.input_pitch) // _pitch(length)
        if held == 0:
            raise ValueError(f"buffers of {self.output_bytes} and {self.input_bytes} bytes hold no {length} bytes")
        return held

    def slice(self, index: int, length: int) -> tuple[int, int]:
        """Device addresses (output, input) of stretch `index`: the same memory, cut up as if it held no buffers."""
        start = index * _pitch(length)
        return int(self._outputs) + start, int(self._inputs) + start

    def host_input(self, index: int) -> Bytes:
        """What the input of launch `index` holds."""
        return input_bytes(index % self.pairs * self.input_pitch, self.input_bytes)

    def read_output(self, index: int, start: int, into: Any) -> None:
        """Copy the output of launch `index` and its guard, from byte `start` on, into a host array."""
        device.cuda.memcpy_dtoh(into, self.output(index) + start)


def _pitch(length: int) -> int:
    """Bytes from one buffer to the next: aligned, with a guard between."""
    return -(-(length + _GUARD) // _ALIGNMENT) * _ALIGNMENT
