"""Compares every output of a rotation with NumPy's, bit for bit where that is possible. Only then times are kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelwatch.instrument import threads
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.poison import POISON

Array = NDArray[Any]

#: (first byte, host array to fill): reads a stretch of an output and, behind it, of its guard.
Read = Callable[[int, Array], None]

#: Bytes that are read back and compared at a time.
_CHUNK = 64 << 20


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


def expected_output(
    reference: Callable[..., Array], before: Array, inputs: Sequence[Array], near: Near | None
) -> Array:
    """Return what NumPy expects of an output: in its dtype, or where it need only be near, in float64."""
    if near is None:
        return reference(before, *inputs)
    return reference(before.astype(np.float64), *(array.astype(np.float64) for array in inputs))


def check_output(name: str, expected: Array, guard: int, read: Read, buffer: Bytes, near: Near | None = None) -> None:
    """Compare an output with what NumPy expects, and its guard with poison.

    Parameters
    ----------
    name : str
        The configuration, for the message.
    expected : ndarray
        As `expected_output` returns it.
    guard : int
        Bytes behind the output that must still be poison.
    read : callable
        Reads the output.
    buffer : ndarray of uint8
        Host memory to read into, a stretch at a time; `buffer_bytes` says how much it takes at least.
    near : Near, optional
        How far the output may lie from what is expected; not at all, in any bit, if not given.

    Raises
    ------
    WrongOutputError
        At the first element that differs, with its index, the value found and the value expected.
    """
    dtype = np.dtype(expected.dtype if near is None else near.dtype)
    row_bytes = math.prod(expected.shape[1:]) * dtype.itemsize
    rows = len(buffer) // row_bytes
    whole = as_bits(expected) if near is None else expected
    for first in range(0, len(whole), rows):
        part = whole[first : first + rows]
        raw = buffer[: len(part) * row_bytes]
        read(first * row_bytes, raw)
        if near is None:
            _compare(name, raw.view(whole.dtype).reshape(part.shape), part, first)
        else:
            _compare_near(name, raw.view(dtype).reshape(part.shape), part, near, first)
    check_guard(name, len(whole) * row_bytes, guard, read, buffer)


def check_guard(name: str, end: int, guard: int, read: Read, buffer: Bytes) -> None:
    """Compare the guard behind an output, which ends with byte `end`, with poison. Arguments as of `check_output`."""
    raw = buffer[:guard]
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


def buffer_bytes(shape: tuple[int, ...], itemsize: int, guard: int) -> int:
    """Return how much host memory `check_output` wants: some rows of the output, never less than one or the guard."""
    row = math.prod(shape[1:]) * itemsize
    return max(min(shape[0], max(1, _CHUNK // row)) * row, guard)


def as_bits(array: Array) -> Array:
    """View an array's elements as unsigned integers of up to 8 bytes: (..., 1), or (..., 2) of 8 for 16 bytes."""
    if array.ndim == 2 and not array.flags.c_contiguous and array.T.flags.c_contiguous:
        # A transposed view has no contiguous last axis to split: split its base's, and transpose again.
        return as_bits(array.T).transpose(1, 0, 2)
    word = math.gcd(array.itemsize, 8)
    return array.view(f"u{word}").reshape(*array.shape, array.itemsize // word)


def _compare(name: str, found: Array, expected: Array, first: int) -> None:
    """Raise WrongOutputError unless two arrays of bits are equal; `first` is the first row's index."""
    if _equal(found, expected):
        return
    where = tuple(int(axis[0]) for axis in np.nonzero(found != expected))[:-1]
    index = [where[0] + first, *where[1:]]
    raise WrongOutputError(differs(name, index, found[where].tobytes(), expected[where].tobytes()))


def _compare_near(name: str, found: Array, expected: Array, near: Near, first: int) -> None:
    """Raise WrongOutputError unless all elements lie near their references."""
    holds = near.holds(found, expected)
    if holds.all():
        return
    where = tuple(int(axis[0]) for axis in np.nonzero(~holds))
    index = [where[0] + first, *where[1:]]
    raise WrongOutputError(
        f"{name}: element {index} is {found[where]}, NumPy expects {expected[where]} within {near.ulp:g} units in the "
        "last place"
    )


def _equal(found: Array, expected: Array) -> bool:
    """Whether all elements are equal; large arrays in strips of their second last axis, in threads."""
    if found.nbytes < threads.WORTH_IT:
        return np.array_equal(found, expected)
    strips, axis = os.cpu_count() or 1, found.ndim - 2
    pairs = zip(np.array_split(found, strips, axis), np.array_split(expected, strips, axis), strict=True)
    return all(threads.each(lambda pair: np.array_equal(*pair), pairs))
