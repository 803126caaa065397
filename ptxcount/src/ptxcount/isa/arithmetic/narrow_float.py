"""Floats of 4, 6 and 8 bits (PTX ISA, "Alternate Floating-Point", "Fixed-point Data formats").

``e2m1``, ``e2m3`` and ``e3m2`` have neither infinities nor NaN. ``ue8m0`` has only powers of two and NaN. ``s2f6`` is a
fixed point number in units of 1/64.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array

#: The NaN code of ``ue8m0``.
NAN_SCALE = 0xFF
#: The codes of the largest finite numbers of ``e4m3`` and ``e5m2``, by exponent bits.
_GREATEST = {4: 0x7E, 5: 0x7B}


class NarrowFormat(NamedTuple):
    """A format of narrow floats."""

    #: Bits that a number takes in a word.
    bits: int
    #: Decoder from codes to float64, and encoder to codes of type uint8.
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]


def _decode_finite(exponent: int, mantissa: int, codes: Array) -> Array:
    """Decode codes with a sign, ``exponent`` and ``mantissa`` bits to float64, as if all codes were finite numbers."""
    sign, bias = 1 << (exponent + mantissa), 2 ** (exponent - 1) - 1
    exponents = (codes >> mantissa).astype(np.int64) & (2**exponent - 1)
    mantissas = codes & (2**mantissa - 1)
    implicit_bits = np.where(exponents > 0, 2.0**mantissa, 0.0)  # none for zeros and subnormals
    magnitudes = np.ldexp(mantissas + implicit_bits, np.maximum(exponents, 1) - bias - mantissa)
    return np.asarray(np.where(codes & sign, -magnitudes, magnitudes))


def _decode_byte(exponent: int, mantissa: int, codes: Array) -> Array:
    """Decode ``e4m3``, which has one NaN per sign, and ``e5m2``, which also has infinities."""
    values = _decode_finite(exponent, mantissa, codes)
    special = np.where((codes & 0x7F == 0x7C) & (exponent == 5), np.copysign(np.inf, values), np.nan)
    return np.where(codes & 0x7F > _GREATEST[exponent], special, values)


def _encode(exponent: int, mantissa: int, greatest: int, values: Array) -> Array:
    """Round to nearest, ties to even, and clamp to the code ``greatest``; NaN becomes the last positive code."""
    sign, magnitudes = 1 << (exponent + mantissa), np.abs(values.astype(np.float64))
    choices = _decode_finite(exponent, mantissa, np.arange(greatest + 1))
    upper = np.clip(np.searchsorted(choices, magnitudes), 1, greatest)
    below, above = magnitudes - choices[upper - 1], choices[upper] - magnitudes
    code = np.where((below < above) | ((below == above) & (upper % 2 == 1)), upper - 1, upper)
    signed_code = code | np.where(np.signbit(values), sign, 0)
    return np.where(np.isnan(values), sign - 1, signed_code).astype(np.uint8)


def _encode_fixed(values: Array) -> Array:
    """Round to the nearest multiple of 1/64, ties to even, and clamp; NaN becomes the largest number."""
    whole = np.rint(np.nan_to_num(values.astype(np.float64) * 64, nan=127))
    return np.asarray(np.clip(whole, -128, 127).astype(np.int8).view(np.uint8))


def encode_scale(values: Array, rounding: str, *, saturate: bool) -> Array:
    """Encode magnitudes as ``ue8m0``, powers of two: round down (``rz``) or up (``rp``).

    Results above 2**127 become NaN, or 2**127 with ``saturate``. Results below 2**-127 become 2**-127.
    """
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0x7FFFFFFF)
    mantissa, least, infinity = bits & 0x7FFFFF, 0x400000, 0x7F800000  # least: 2**-127, a subnormal
    rounds_up = (rounding == "rp") & (mantissa != 0) & (bits > least) & (bits < infinity)
    code = (bits >> 23) + rounds_up
    return np.where((code == NAN_SCALE) & (bits <= infinity) & saturate, NAN_SCALE - 1, code).astype(np.uint8)


def decode_scale(codes: Array) -> Array:
    """Decode codes of ``ue8m0`` to float64: the power of two with the exponent ``code - 127``, or NaN."""
    return np.where(codes == NAN_SCALE, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


#: The formats, by the type name of a pair in a word.
FORMATS: dict[str, NarrowFormat] = {
    "e2m1x2": NarrowFormat(4, partial(_decode_finite, 2, 1), partial(_encode, 2, 1, 0x7)),
    "e2m3x2": NarrowFormat(8, partial(_decode_finite, 2, 3), partial(_encode, 2, 3, 0x1F)),
    "e3m2x2": NarrowFormat(8, partial(_decode_finite, 3, 2), partial(_encode, 3, 2, 0x1F)),
    "e4m3x2": NarrowFormat(8, partial(_decode_byte, 4, 3), partial(_encode, 4, 3, _GREATEST[4])),
    "e5m2x2": NarrowFormat(8, partial(_decode_byte, 5, 2), partial(_encode, 5, 2, _GREATEST[5])),
    "s2f6x2": NarrowFormat(8, lambda codes: codes.astype(np.uint8).view(np.int8) / 64.0, _encode_fixed),
}
#: The decoders of scales by type; ``ue4m3`` has no sign.
SCALES: dict[str, Callable[[Array], Array]] = {
    "ue8m0": decode_scale,
    "ue4m3": lambda codes: _decode_byte(4, 3, codes & 0x7F),
}
