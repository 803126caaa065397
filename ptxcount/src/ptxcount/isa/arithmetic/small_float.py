"""Floats of 8 bits: ``e4m3`` and ``e5m2``, by the bits of their exponents (PTX ISA, "Alternate Floating-Point")."""

from __future__ import annotations

import numpy as np

from ...lanes.warps import Array

#: The bits of the exponent, by the name of two such numbers in a word.
PAIRS = {"e4m3x2": 4, "e5m2x2": 5}


def decode_small(exponent: int, bits: Array) -> Array:
    """Decode ``e4m3`` and ``e5m2``; the first has no infinities, and one NaN of each sign."""
    mantissa, bias = 7 - exponent, 2 ** (exponent - 1) - 1
    field, fraction = (bits >> mantissa).astype(np.int64) & (2**exponent - 1), bits & (2**mantissa - 1)
    value = np.ldexp(fraction + (field > 0) * 2.0**mantissa, np.maximum(field, 1) - bias - mantissa)
    top = field == 2**exponent - 1
    special = np.where(fraction == 0, np.inf, np.nan) if exponent == 5 else np.where(fraction == 7, np.nan, value)
    return np.where(bits & 128, -1, 1) * np.where(top, special, value)


def encode_small(exponent: int, values: Array) -> Array:
    """Encode to the nearest, ties to even; beyond the greatest finite one, that one; NaN as 0x7F."""
    finite = decode_small(exponent, np.arange(0x7F))
    finite = finite[np.isfinite(finite)]
    size = np.abs(values.astype(np.float64))
    upper = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    below, above = size - finite[upper - 1], finite[upper] - size
    code = np.where((below < above) | ((below == above) & (upper % 2 == 1)), upper - 1, upper)
    return np.asarray(np.where(np.isnan(values), 0x7F, code | (np.signbit(values) * 0x80))).astype(np.uint8)
