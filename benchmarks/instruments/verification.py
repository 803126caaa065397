"""Correct before timed: every output of a rotation is compared with NumPy's, bit for bit."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instruments import threads
from benchmarks.instruments.buffers import Bytes
from benchmarks.instruments.poison import POISON

Array = NDArray[Any]

#: (first byte, host array to fill): reads a stretch of an output and, behind it, of its guard.
Read = Callable[[int, Array], None]

#: Bytes that are read back and compared at a time.
_CHUNK = 64 << 20


class WrongOutputError(AssertionError):
    """A kernel wrote something else than its NumPy reference, or wrote where it must not."""


def check_output(name: str, expected: Array, guard: int, read: Read, buffer: Bytes) -> None:
    """Compare an output with what NumPy expects, and its guard with poison.

    Parameters
    ----------
    name : the configuration, for the message.
    expected : array or view of the output's shape and dtype.
    guard : bytes behind the output that must still be poison.
    read : reads the output.
    buffer : host memory to read into, a stretch at a time; `buffer_bytes` says how much it takes at least.

    Raises
    ------
    WrongOutputError : at the first element that differs, with its index, the value found and the value expected.
    """
    bits = as_bits(expected)
    row_bytes = bits[0].size * bits.itemsize
    rows = len(buffer) // row_bytes
    for first in range(0, len(bits), rows):
        part = bits[first : first + rows]
        raw = buffer[: part.size * part.itemsize]
        read(first * row_bytes, raw)
        _compare(name, raw.view(bits.dtype).reshape(part.shape), part, first)
    raw = buffer[:guard]
    read(len(bits) * row_bytes, raw)
    touched = np.flatnonzero(raw != POISON)
    if touched.size:
        raise WrongOutputError(f"{name}: wrote behind the end of its output, first {touched[0]} bytes on")


def buffer_bytes(shape: tuple[int, ...], itemsize: int, guard: int) -> int:
    """Bytes of host memory that `check_output` wants: some rows of the output, never less than one or the guard."""
    row = math.prod(shape[1:]) * itemsize
    return max(min(shape[0], max(1, _CHUNK // row)) * row, guard)


def as_bits(array: Array) -> Array:
    """View an array's elements as unsigned integers: (..., 1) of 1 to 8 bytes, or (..., 2) of 8 for 16 bytes."""
    if array.ndim == 2 and not array.flags.c_contiguous and array.T.flags.c_contiguous:
        # A transposed view has no contiguous last axis to split: split its base's, and transpose again.
        return as_bits(array.T).transpose(1, 0, 2)
    word = min(array.itemsize, 8)
    return array.view(f"u{word}").reshape(*array.shape, array.itemsize // word)


def _compare(name: str, found: Array, expected: Array, first: int) -> None:
    """Raise WrongOutputError unless two arrays of bits are equal; `first` is the first row's index."""
    if _equal(found, expected):
        return
    where = tuple(int(axis[0]) for axis in np.nonzero(found != expected))[:-1]
    index = [where[0] + first, *where[1:]]
    raise WrongOutputError(
        f"{name}: element {index} is {found[where].tobytes().hex()}, NumPy expects {expected[where].tobytes().hex()} "
        "(bytes in memory order)"
    )


def _equal(found: Array, expected: Array) -> bool:
    """Whether all elements are equal; large arrays in strips of their second last axis, in threads."""
    if found.nbytes < threads.WORTH_IT:
        return np.array_equal(found, expected)
    strips, axis = os.cpu_count() or 1, found.ndim - 2
    pairs = zip(np.array_split(found, strips, axis), np.array_split(expected, strips, axis), strict=True)
    return all(threads.each(lambda pair: np.array_equal(*pair), pairs))
