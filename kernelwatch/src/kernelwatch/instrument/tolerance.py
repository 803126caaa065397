"""How far an output may lie from NumPy's, and what is said of a wrong one. `comparison` compares on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelwatch.instrument.inputs import POISON

Array = NDArray[Any]

#: (first byte, host array to fill): reads a stretch of an output and, behind it, of its guard.
Read = Callable[[int, Array], None]

#: Elements that are read back and compared at a time.
_CHUNK = 8 << 20


class WrongOutputError(AssertionError):
    """A kernel's output differs from its NumPy reference, or the kernel wrote where it must not."""


class Near(NamedTuple):
    """How far an output of `dtype` may lie from its reference in float64: units in the last place."""

    dtype: str
    ulp: float

    def holds(self, found: Array, expected: Array) -> NDArray[np.bool_]:
        """Whether each element is near: `ulp` units of the larger of the reference and 1 at most. NaN is not."""
        scale = np.maximum(np.abs(expected), 1.0).astype(found.dtype)
        above = np.nextafter(scale, scale.dtype.type(np.inf)).astype(np.float64)
        near: NDArray[np.bool_] = np.abs(found.astype(np.float64) - expected) <= self.ulp * (above - scale)
        return near


def check_near(name: str, expected: Array, guard: int, read: Read, near: Near) -> None:
    """Compare an output with what NumPy expects of it in float64, and so many bytes of its guard with poison.

    `name` is the configuration's, for the message.

    Raises
    ------
    WrongOutputError
        At the first element that differs, with its index, the value found and the value expected.
    """
    itemsize, flat = np.dtype(near.dtype).itemsize, expected.reshape(-1)
    for first in range(0, len(flat), _CHUNK):
        part = flat[first : first + _CHUNK]
        raw = np.empty(len(part) * itemsize, np.uint8)
        read(first * itemsize, raw)
        holds = near.holds(raw.view(near.dtype), part)
        if not holds.all():
            place = int(np.argmin(holds))
            index = list(map(int, np.unravel_index(first + place, expected.shape)))
            raise WrongOutputError(
                f"{name}: element {index} is {raw.view(near.dtype)[place]}, NumPy expects {part[place]} within "
                f"{near.ulp:g} units in the last place"
            )
    check_guard(name, len(flat) * itemsize, guard, read)


def check_guard(name: str, end: int, guard: int, read: Read) -> None:
    """Compare the guard behind an output, which ends with byte `end`, with poison. Arguments as of `check_near`."""
    raw = np.empty(guard, np.uint8)
    read(end, raw)
    touched = np.flatnonzero(raw != POISON)
    if touched.size:
        raise WrongOutputError(behind_the_end(name, int(touched[0])))


def behind_the_end(name: str, distance: int) -> str:
    """Say that a launch wrote behind its output, first at that distance in bytes."""
    return f"{name}: wrote behind the end of its output, first {distance} bytes on"


def differs(name: str, where: Sequence[int], found: bytes, expected: bytes) -> str:
    """Say that an element is another than it must be."""
    return f"{name}: element {list(where)} is {found.hex()}, NumPy expects {expected.hex()} (bytes in memory order)"
