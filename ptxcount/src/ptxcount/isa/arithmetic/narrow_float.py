"""Floats of 4, 6 and 8 bits (PTX ISA, "Alternate Floating-Point", "Fixed-point Data formats").

``e2m1``, ``e2m3`` and ``e3m2`` have neither infinities nor NaN. ``ue8m0`` has only powers of two. ``s2f6`` is a fixed
point number in units of 1/64.
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
    """A format: the bits of a number in a word, its decoder, and its encoder."""

    bits: int
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array]


def _decode_finite(exponent: int, mantissa: int, codes: Array) -> Array:
    """Decode formats in which every code is finite."""
    sign, bias = 1 << (exponent + mantissa), 2 ** (exponent - 1) - 1
    field, rest = (codes >> mantissa).astype(np.int64) & (2**exponent - 1), codes & (2**mantissa - 1)
    size = np.ldexp(rest + (field > 0) * 2.0**mantissa, np.maximum(field, 1) - bias - mantissa)
    return np.asarray(np.where(codes & sign, -size, size))


def _decode_byte(exponent: int, mantissa: int, codes: Array) -> Array:
    """Decode ``e4m3``, which has one NaN per sign, and ``e5m2``, which also has infinities."""
    values = _decode_finite(exponent, mantissa, codes)
    special = np.where((codes & 0x7F == 0x7C) & (exponent == 5), np.copysign(np.inf, values), np.nan)
    return np.where(codes & 0x7F > _GREATEST[exponent], special, values)


def _encode(exponent: int, mantissa: int, greatest: int, values: Array) -> Array:
    """Round to nearest, ties to even; clamp to the largest code's number; NaN is the last code."""
    sign = 1 << (exponent + mantissa)
    sizes, size = _decode_finite(exponent, mantissa, np.arange(greatest + 1)), np.abs(values.astype(np.float64))
    upper = np.clip(np.searchsorted(sizes, size), 1, greatest)
    below, above = size - sizes[upper - 1], sizes[upper] - size
    code = np.where((below < above) | ((below == above) & (upper % 2 == 1)), upper - 1, upper)
    return np.asarray(np.where(np.isnan(values), sign - 1, code | np.signbit(values) * sign)).astype(np.uint8)


def _encode_fixed(values: Array) -> Array:
    """Round to the nearest multiple of 1/64, ties to even, and clamp; NaN becomes the largest number."""
    whole = np.rint(np.nan_to_num(values.astype(np.float64) * 64, nan=127))
    return np.asarray(np.clip(whole, -128, 127).astype(np.int8).view(np.uint8))


def encode_scale(values: Array, rounding: str, *, saturate: bool) -> Array:
    """Encode magnitudes of float32 as ``ue8m0``: the next power of two below (``rz``) or above (``rp``)."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0x7FFFFFFF)
    up = (rounding == "rp") & (bits & 0x7FFFFF != 0) & (bits > 0x400000) & (bits < 0x7F800000)
    code = (bits >> 23) + up
    return np.where((code == NAN_SCALE) & (bits <= 0x7F800000) & saturate, NAN_SCALE - 1, code).astype(np.uint8)


def decode_scale(codes: Array) -> Array:
    """Decode ``ue8m0``."""
    return np.where(codes == NAN_SCALE, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


#: The formats, by the type name of a pair in a word.
FORMATS: dict[str, NarrowFormat] = {
    **{
        f"e{exponent}m{mantissa}x2": NarrowFormat(
            4 if mantissa == 1 else 8,
            partial(_decode_finite, exponent, mantissa),
            partial(_encode, exponent, mantissa, (1 << exponent + mantissa) - 1),
        )
        for exponent, mantissa in ((2, 1), (2, 3), (3, 2))
    },
    **{
        f"e{exponent}m{7 - exponent}x2": NarrowFormat(
            8, partial(_decode_byte, exponent, 7 - exponent), partial(_encode, exponent, 7 - exponent, greatest)
        )
        for exponent, greatest in _GREATEST.items()
    },
    "s2f6x2": NarrowFormat(8, lambda codes: codes.astype(np.uint8).view(np.int8) / 64.0, _encode_fixed),
}
#: The decoders of scales by type; ``ue4m3`` has no sign.
SCALES: dict[str, Callable[[Array], Array]] = {
    "ue8m0": decode_scale,
    "ue4m3": lambda codes: _decode_byte(4, 3, codes & 0x7F),
}
