"""bfloat16: the upper half of a float32. NumPy has no such type, so its bits are unsigned integers here."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lanes.warps import Array
from .directed import round_toward
from .floating import wrap_for_pairs

#: The canonical NaN of all instructions (PTX ISA, ``cvt``, ``fma``).
NAN = 0x7FFF
INFINITY = 0x7F80


def decode_bits(bits: Array) -> Array:
    """Decode the bits of bfloat16 to float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def encode_bits(exact: Array, rounding: str = "rn") -> Array:
    """Encode floats as bits of bfloat16 (uint16), with a rounding modifier of ``cvt`` and the canonical NaN.

    The floats must be exact or rounded to odd. After any other rounding, this one would be a second rounding.
    """
    wide = exact.astype(np.float64)
    single = wide.astype(np.float32)
    excess = wide - single.astype(np.float64)
    word = round_toward("rz", single, excess).view(np.uint32) | (excess != 0)  # last bit: some bits were cut off
    if rounding == "rn":
        last_bit = (word >> np.uint32(16)) & np.uint32(1)  # ties go to even
        word = word + np.uint32(0x7FFF) + last_bit
    elif rounding != "rz":
        moves_away = (word & 0xFFFF != 0) & np.isfinite(wide) & (np.signbit(wide) == (rounding == "rm"))
        word = word + np.where(moves_away, np.uint32(0x10000), np.uint32(0))
    return np.where(np.isnan(exact), NAN, word >> np.uint32(16)).astype(np.uint16)


def clamp_infinities(bits: Array) -> Array:
    """Replace infinities by the largest finite number of the same sign (``.satfinite``)."""
    return np.asarray(np.where(bits & 0x7FFF == INFINITY, bits - np.uint16(1), bits))


def wrap_for_bits(compute: Callable[..., Any]) -> Callable[..., Array]:
    """Wrap a function of float64, so that it computes on bits of bfloat16, or on both halves of words (``bf16x2``)."""

    def compute_single(*bits: Array) -> Array:
        return encode_bits(np.asarray(compute(*(decode_bits(operand).astype(np.float64) for operand in bits))))

    compute_pair = wrap_for_pairs(compute_single)

    def compute_words(*words: Array) -> Array:
        return compute_single(*words) if words[0].dtype.itemsize == 2 else compute_pair(*words)

    return compute_words
