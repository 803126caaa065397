"""Contents of arrays before a launch: generated values or values of a user's function in inputs, poison in outputs."""

import math
import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import ArgumentError
from kernelwatch.instrument import parallel_copy
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import ArrayArgument, to_dtype
from ptxcount.util import host_memory

Bytes = NDArray[np.uint8]

#: Byte of poison. The random block has it at most three times in sequence, so unwritten elements of 4 bytes or more are
#: always detected; of smaller ones, those that should not equal poison.
POISON = 0xA5

#: Bytes of the random block that inputs repeat: 16 times a prime, so that no row length or buffer size divides it.
BLOCK = 16 * 2097143

#: Number of exact values, and their denominator: multiples of 1/8 from -2 to 2, or integers from -16 to 16. A product
#: of two has at most 9 bits besides its sign, so a float32, with 24 bits, holds a sum of 2^15 products exactly.
LEVELS, DENOMINATOR = 33, 8

#: Distance in bytes between the beginnings of two inputs in the block; a multiple of 16, the largest size of a number.
_OFFSET_STEP = 16 * 1009

_SEED = 20230319


@lru_cache(maxsize=2)
def input_block(exact_dtype: str | None = None) -> Bytes:
    """Return the BLOCK bytes that inputs repeat: exact values of a dtype, or random bits if `exact_dtype` is None.

    Zeros would hide wrong indices, and may move faster than real data.
    """
    generator = np.random.default_rng(_SEED)
    if exact_dtype is None:
        return np.frombuffer(generator.bytes(BLOCK), dtype=np.uint8)
    count = BLOCK // _component_dtype(exact_dtype).itemsize
    return _exact_values(generator.integers(0, LEVELS, count), exact_dtype).view(np.uint8)


def _component_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    element = to_dtype(dtype)
    return np.dtype(f"f{element.itemsize // 2}") if element.kind == "c" else element


def _exact_values(levels: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return exact values by their indices, which are from 0 to LEVELS - 1."""
    real = _component_dtype(dtype)
    numerators = levels.astype(np.int8) - np.int8(LEVELS // 2)
    return (numerators if real.kind in "iu" else numerators / DENOMINATOR).astype(real).view(dtype)


def block_offset(ordinal: int) -> int:
    """Return the offset in bytes of an input in the block. Inputs of one launch have different offsets."""
    return ordinal * _OFFSET_STEP


def repeat_block(exact_dtype: str | None, offset: int, length: int) -> Bytes:
    """Return `length` bytes of the endlessly repeated `input_block`, from byte `offset` on; do not write to them."""
    period = input_block(exact_dtype)
    offset %= len(period)
    if offset + length <= len(period):
        return period[offset : offset + length]
    with _tiling_lock:
        if len(_tiled_blocks.get(exact_dtype, b"")) < offset + length:
            _tiled_blocks[exact_dtype] = _tile_block(period, offset + length)
        return _tiled_blocks[exact_dtype][offset : offset + length]


#: Dtype of exact values -> repetitions of its block, cached because writing them takes as long as writing a reference.
_tiled_blocks: dict[str | None, Bytes] = {}
_tiling_lock = threading.Lock()


def _tile_block(block: Bytes, length: int) -> Bytes:
    tiled = np.empty(length, dtype=np.uint8)

    def fill(first: int) -> None:
        piece = tiled[first : first + len(block)]
        piece[:] = block[: len(piece)]

    parallel_copy.run_in_steps(fill, length, len(block))
    tiled.setflags(write=False)
    return tiled


def make_counter_input(shape: tuple[int, ...], dtype: DTypeLike, ordinal: int, *, is_exact: bool) -> NDArray[Any]:
    """Return an input of a launch on the CPU, computed from the index of each element.

    With `is_exact`, the elements are exact values. Otherwise the bytes are those of a counter with numbers of 1, 2, 4
    or 8 bytes, at most as large as an element. So elements of 4, 8 or 16 bytes differ from each other. Two inputs of a
    launch differ, unless they have one element, are exact with at most a few hundred, or are bytes 128 inputs apart.
    """
    element, step = to_dtype(dtype), 2654435761 + 2 * ordinal
    nbytes = math.prod(shape) * element.itemsize
    if is_exact:
        hashed = host_memory.make_range(nbytes // _component_dtype(element).itemsize, np.uint32, step=step)
        return _exact_values((hashed >> 16) % LEVELS, element).reshape(shape)
    unit = min(8, 1 << (element.itemsize.bit_length() - 1))
    counter = host_memory.make_range(-(-nbytes // unit), f"u{unit}", step=step)
    return counter.view(np.uint8)[:nbytes].view(element).reshape(shape)


def make_content(argument: ArrayArgument) -> NDArray[Any]:
    """Return an array's content before a launch.

    Raises ArgumentError if a user's function fails, or returns another shape or values that the dtype cannot have.
    """
    if argument.direction == "out":
        return np.full(argument.nbytes, POISON, np.uint8).view(argument.dtype).reshape(argument.shape)
    generator = np.random.default_rng([argument.seed, *map(ord, argument.name)])
    if argument.limit is not None:
        return generator.integers(0, argument.limit, argument.shape).astype(argument.dtype)
    if callable(argument.values):
        variables = {**(argument.extents or {}), "shape": argument.shape, "dtype": argument.dtype}
        result = expressions.evaluate_function(argument.values, variables)
        try:
            values = np.array(np.asarray(result), dtype=argument.dtype, order="C")
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"the function in values= returns no array of {argument.dtype}: {error}"
            raise ArgumentError(f"{argument.name}: {problem}") from None
        if values.shape != argument.shape:
            raise ArgumentError(
                f"{argument.name}: the function in values= returns the shape {values.shape}, not {argument.shape}"
            )
        return values
    if argument.values == "zeros":
        return np.zeros(argument.shape, argument.dtype)
    if argument.values == "random" and argument.dtype.kind in "iu":
        limits = np.iinfo(argument.dtype)
        return generator.integers(limits.min, limits.max, argument.shape, argument.dtype, endpoint=True)
    if argument.values == "random":
        return generator.random(argument.shape).astype(argument.dtype)
    values = make_counter_input(argument.shape, argument.dtype, argument.ordinal, is_exact=argument.values == "exact")
    return np.array(values, order="C")
