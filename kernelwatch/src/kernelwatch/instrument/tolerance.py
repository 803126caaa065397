"""Comparison of an output with a float64 reference within a tolerance, on the host; and messages of wrong outputs.

`check_output` compares bit for bit on the device.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelwatch.instrument.inputs import POISON
from kernelwatch.kernel import Array
from kernelwatch.kernel.arguments import to_dtype

#: Function that reads an output or its guard. Its arguments are the index of the first byte, and the array to fill.
ReadOutput = Callable[[int, Array], None]

#: Number of elements to compare at a time. They fit in a core's cache, so the comparison is 8 times as fast.
_CHUNK_ELEMENTS = 1 << 16


class WrongOutputError(AssertionError):
    """A kernel's output differs from its reference, or the kernel wrote outside its outputs."""


class UlpTolerance(NamedTuple):
    """The tolerance of an output: `ulp` units in the last place of the output's `dtype`."""

    dtype: str
    ulp: float

    def is_near(self, actual: Array, expected: Array) -> NDArray[np.bool_]:
        """Return, for each element, whether its error is at most `ulp` ulps of max(|expected|, 1).

        The result is false for NaN and for infinities, even if both elements are equal. `expected` is float64.
        """
        scale = np.maximum(np.abs(expected), 1.0).astype(actual.dtype)
        half = scale / 2  # the largest finite value has no successor, half of it has
        above = np.nextafter(half, half.dtype.type(np.inf)).astype(np.float64)
        near: NDArray[np.bool_] = np.abs(actual.astype(np.float64) - expected) <= self.ulp * 2 * (above - half)
        return near


def check_within_tolerance(
    name: str, expected: Array, guard: int, read_output: ReadOutput, tolerance: UlpTolerance
) -> None:
    """Compare an output with a float64 reference, and the `guard` bytes after it with poison.

    `name` is the configuration's name, for messages.

    Raises
    ------
    WrongOutputError
        An element is outside the tolerance, or the kernel wrote past the end of the output.
    """
    itemsize, flat = to_dtype(tolerance.dtype).itemsize, expected.reshape(-1)
    for first in range(0, len(flat), _CHUNK_ELEMENTS):
        part = flat[first : first + _CHUNK_ELEMENTS]
        raw = np.empty(len(part) * itemsize, np.uint8)
        read_output(first * itemsize, raw)
        is_near = tolerance.is_near(raw.view(tolerance.dtype), part)
        if not is_near.all():
            first_wrong = int(np.argmin(is_near))
            index = list(map(int, np.unravel_index(first + first_wrong, expected.shape)))
            raise WrongOutputError(
                f"{name}: element {index} is {raw.view(tolerance.dtype)[first_wrong]}, "
                f"the reference is {part[first_wrong]}, with a tolerance of {tolerance.ulp:g} units in the last place"
            )
    check_guard(name, len(flat) * itemsize, guard, read_output)


def check_guard(name: str, end: int, guard: int, read_output: ReadOutput) -> None:
    """Compare the `guard` bytes after an output of `end` bytes with poison. Raises WrongOutputError if they differ."""
    raw = np.empty(guard, np.uint8)
    read_output(end, raw)
    touched = np.flatnonzero(raw != POISON)
    if touched.size:
        raise WrongOutputError(format_overrun(name, int(touched[0])))


def format_overrun(name: str, distance: int) -> str:
    """Return the message for a write past the end of an output, whose first byte is `distance` bytes after the end."""
    return f"{name}: wrote past the end of its output; the first wrong byte is {distance} bytes after the end"


def format_difference(name: str, index: Sequence[int], actual: bytes, expected: bytes) -> str:
    """Return the message for a wrong element, with the bytes of the actual and the expected element."""
    return f"{name}: element {list(index)} is {actual.hex()}, the reference is {expected.hex()} (bytes in memory order)"
