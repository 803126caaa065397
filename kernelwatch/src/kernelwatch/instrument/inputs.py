"""What arrays hold before a launch: inputs random bits, or numbers with exact sums; outputs and guards poison."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import ArgumentError
from kernelwatch.instrument import parallel_copy
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import ArrayArgument
from ptxcount.util import host_memory

Bytes = NDArray[np.uint8]

#: Every byte of poisoned memory: no input has such bytes in a row, so what was not written shows.
POISON = 0xA5

#: Bytes of the random block that inputs repeat; 16 x a prime, so that no row length or buffer size divides it.
BLOCK = 16 * 2097143

#: Exact values are LEVELS multiples of 1 / DENOMINATOR about zero, from -2 to 2. The product of two takes 9 bits with
#: its sign, so a sum of 2^15 of them fits the 24 bits of a float32 in any order.
LEVELS, DENOMINATOR = 33, 8

#: Bytes of the block from the beginning of one input to that of the next; a multiple of all item sizes.
_APART = 16 * 1009

_SEED = 20230319


@lru_cache(maxsize=2)
def block(exact_dtype: str | None = None) -> Bytes:
    """Return the bytes that inputs repeat: exact values of a dtype, or random ones.

    They are real data: zeros may move faster, and hide wrong indices.
    """
    generator = np.random.default_rng(_SEED)
    if exact_dtype is None:
        return np.frombuffer(generator.bytes(BLOCK), dtype=np.uint8)
    count = BLOCK // _real(exact_dtype).itemsize
    return _exact(generator.integers(0, LEVELS, count), exact_dtype).view(np.uint8)


def _real(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of an element's parts."""
    kind = np.dtype(dtype)
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def _exact(levels: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return the values that numbers from 0 to LEVELS - 1 stand for: integers, or multiples of 1 / DENOMINATOR."""
    real = _real(dtype)
    numerators = levels.astype(np.int8) - np.int8(LEVELS // 2)
    return (numerators if real.kind in "iu" else numerators / DENOMINATOR).astype(real).view(dtype)


def start(ordinal: int) -> int:
    """Return the byte of the block that an input begins with. All inputs of a launch differ."""
    return ordinal * _APART


def repeated(exact_dtype: str | None, start: int, length: int) -> Bytes:
    """Return `length` bytes, from byte `start` on, of memory that repeats a block; not to be written to."""
    one = block(exact_dtype)
    start %= len(one)
    if start + length <= len(one):
        return one[start : start + length]
    with _tiling:
        if len(_tiled.get(exact_dtype, b"")) < start + length:
            _tiled[exact_dtype] = _tile(one, start + length)
        return _tiled[exact_dtype][start : start + length]


#: Blocks repeated as often as was asked for: to write them again takes as long as a reference does.
_tiled: dict[str | None, Bytes] = {}
_tiling = threading.Lock()


def _tile(one: Bytes, length: int) -> Bytes:
    out = np.empty(length, dtype=np.uint8)

    def fill(first: int) -> None:
        piece = out[first : first + len(one)]
        piece[:] = one[: len(piece)]

    parallel_copy.each(fill, length, len(one))
    out.setflags(write=False)
    return out


def counted(shape: tuple[int, ...], dtype: DTypeLike, ordinal: int, *, is_exact: bool) -> NDArray[Any]:
    """Return an input for a launch on the CPU, a function of each element's index; all inputs of a launch differ.

    Bits are those of a counter: every element of 4 bytes or more differs.
    """
    kind, step = np.dtype(dtype), 2654435761 + 2 * ordinal
    nbytes = math.prod(shape) * kind.itemsize
    if is_exact:
        hashed = host_memory.counting(nbytes // _real(kind).itemsize, np.uint32, step=step)
        return _exact((hashed >> 16) % LEVELS, kind).reshape(shape)
    unit = min(kind.itemsize, 8)
    counter = host_memory.counting(-(-nbytes // unit), f"u{unit}", step=step)
    return counter.view(np.uint8)[:nbytes].view(kind).reshape(shape)


def content(one: ArrayArgument) -> NDArray[Any]:
    """Return what an array holds before a launch. Raises ArgumentError where a user's function gives no such array."""
    if one.direction == "out":
        return np.full(one.nbytes, POISON, np.uint8).view(one.dtype).reshape(one.shape)
    generator = np.random.default_rng([one.seed, *map(ord, one.name)])
    if one.limit is not None:
        return generator.integers(0, one.limit, one.shape).astype(one.dtype)
    if callable(one.values):
        known = {**(one.extents or {}), "shape": one.shape, "dtype": one.dtype}
        found = np.asarray(expressions.called(one.values, known))
        if found.shape != one.shape:
            raise ArgumentError(f"{one.name}: its values have the shape {found.shape}; needed is {one.shape}")
        return np.array(found, dtype=one.dtype, order="C")
    if one.values == "zeros":
        return np.zeros(one.shape, one.dtype)
    if one.values == "random" and one.dtype.kind in "iu":
        limits = np.iinfo(one.dtype)
        return generator.integers(limits.min, limits.max, one.shape, one.dtype, endpoint=True)
    if one.values == "random":
        return generator.random(one.shape).astype(one.dtype)
    held = counted(one.shape, one.dtype, one.ordinal, is_exact=one.values == "exact")
    return np.array(held, order="C")
