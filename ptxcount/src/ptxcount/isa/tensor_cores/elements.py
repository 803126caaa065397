"""Elements of matrices in registers, and their conversion to and from float64 (PTX ISA, "Matrix Data-types")."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array
from ..arithmetic import bfloat
from ..arithmetic.narrow_float import FORMATS


class Element(NamedTuple):
    """An element type of matrices: the number of bits, and the decoder to float64."""

    bits: int
    decode: Callable[[Array], Array]


#: Name of ``e2m1`` in the middle of a byte (CUTLASS 4, ``mma_traits_sm120.hpp``, ``fp4_shift_A``).
PADDED = "e2m1 in a byte"
#: Element types by name. 6-bit elements are the lower bits of a byte. XOR and subtraction extend signs. Sums of integer
#: products stay below 2**53, so they are exact in float64.
ELEMENTS: dict[str, Element] = {
    "f16": Element(16, lambda x: x.astype(np.uint16).view(np.float16).astype(np.float64)),
    "bf16": Element(16, lambda x: bfloat.decode_bits(x).astype(np.float64)),
    "tf32": Element(32, lambda x: (x.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)),
    "f32": Element(32, lambda x: x.astype(np.uint32).view(np.float32).astype(np.float64)),
    "f64": Element(64, lambda x: x.astype(np.uint64).view(np.float64)),
    "s32": Element(32, lambda x: x.astype(np.uint32).view(np.int32).astype(np.float64)),
    "e4m3": Element(8, FORMATS["e4m3x2"].decode),
    "e5m2": Element(8, FORMATS["e5m2x2"].decode),
    "e2m3": Element(8, FORMATS["e2m3x2"].decode),
    "e3m2": Element(8, FORMATS["e3m2x2"].decode),
    "e2m1": Element(4, FORMATS["e2m1x2"].decode),
    PADDED: Element(8, lambda x: FORMATS["e2m1x2"].decode(x >> 2)),
    "u8": Element(8, lambda x: x.astype(np.float64)),
    "s8": Element(8, lambda x: ((x.astype(np.int64) ^ 128) - 128).astype(np.float64)),
    "u4": Element(4, lambda x: x.astype(np.float64)),
    "s4": Element(4, lambda x: ((x.astype(np.int64) ^ 8) - 8).astype(np.float64)),
    "b1": Element(1, lambda x: x.astype(np.float64)),
}


def encode(result: Array, name: str, *, saturate: bool) -> Array:
    """Encode sums of float64 as bits of ``f16``, ``f32``, ``f64`` or ``s32``; ``saturate`` clamps only ``s32``."""
    if name == "s32":
        if saturate:
            result = np.clip(result, -(2**31), 2**31 - 1)
        return result.astype(np.int64).astype(np.uint32)
    dtype = np.dtype({"f16": "f2", "f32": "f4"}.get(name, "f8"))
    return np.ascontiguousarray(result.astype(dtype)).view(f"u{dtype.itemsize}")


def unpack_elements(words: Array, bits: int, count: int) -> Array:
    """Split registers, (..., 32 lanes), into ``count`` elements of ``bits`` bits, the lowest first, on a last axis."""
    if count == 1:
        return words[..., None]
    shifts = (np.arange(count) * bits).astype(words.dtype)
    return np.asarray((words[..., None] >> shifts) & words.dtype.type((1 << bits) - 1))


def pack_elements(elements: Array, bits: int) -> Array:
    """Join the elements of each register, along the last axis, to a word; the inverse of `unpack_elements`."""
    if elements.shape[-1] == 1:
        return elements[..., 0]
    word = np.zeros(elements.shape[:-1], np.uint32)
    for place in range(elements.shape[-1]):
        word |= elements[..., place].astype(np.uint32) << np.uint32(place * bits)
    return word
