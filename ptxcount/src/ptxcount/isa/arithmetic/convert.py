"""``cvt``: conversions between types, with rounding and saturation (PTX ISA, ``cvt``)."""

from collections.abc import Callable

import numpy as np

from ...lanes.warps import Array
from ...ptx.program import TYPES, Type
from . import bfloat
from .directed import MODES, round_toward
from .floating import apply_relu, clamp01, flush, round_to_odd

#: Roundings of floats to whole numbers.
TO_INTEGER: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
#: The canonical NaN of float16.
NAN_OF_HALF = np.array(0x7FFF, np.uint16).view(np.float16)
ROUNDINGS = frozenset({"rn", *MODES, *TO_INTEGER})


def _convert_to_integer(a: Array, source: Type, target: Type, rounding: str) -> Array:
    """Round floats, then clamp them to the target type.

    NaN becomes 0. If either type has 64 bits, it becomes the integer with only the top bit set.
    """
    rounded = TO_INTEGER[rounding](a.astype(np.float64))
    least, most = np.iinfo(target.dtype).min, np.iinfo(target.dtype).max
    inside = (rounded >= float(least)) & (rounded < float(most))
    converted = np.where(inside, rounded, 0).astype(target.dtype)
    clamped = np.where(rounded < 0, target.dtype.type(least), target.dtype.type(most))
    of_nan = 1 << (target.bits - 1) if 8 in (source.size, target.size) else 0
    converted_nan = np.array(of_nan, f"u{target.size}").view(target.dtype)
    return np.where(np.isnan(a), converted_nan, np.where(inside, converted, clamped)).astype(target.dtype)


def _find_error(exact: Array, rounded: Array) -> Array:
    """Return float64 with the sign of ``exact - rounded``; ``exact`` are floats or integers, up to 64 bits."""
    wide = rounded.astype(np.float64)
    if exact.dtype.kind == "f":
        return exact.astype(np.float64) - wide
    half = exact.dtype.itemsize * 4
    upper = (exact >> half).astype(np.float64) * 2.0**half
    return (upper - wide) + (exact & ((1 << half) - 1)).astype(np.float64)


def convert(
    a: Array, source: Type, target: Type, rounding: str, *, saturate: bool, ftz: bool, relu: bool = False,
    satfinite: bool = False,
) -> Array:  # fmt: skip
    """Convert an array of the ``source`` type to the ``target`` type.

    Integers become other integers by truncation or extension; with ``saturate``, by clamping. ``rni``, ``rzi``, ``rmi``
    and ``rpi`` round floats to whole numbers, which are clamped to an integer target; other modes round float results.
    ``saturate`` clamps float results to [0, 1], except bfloat16. With ``satfinite``, infinities become the largest
    finite numbers. ``relu`` turns negative operands into zeros. ``ftz`` flushes f32 and bfloat16, not f16 and f64.
    """
    if source.kind == "bf16":
        a, source = bfloat.decode_bits(a), TYPES["f32"]
    if ftz and a.dtype == np.float32:
        a = flush(a)
    if relu:
        a = apply_relu(a)
    if target.kind == "bf16":
        return _convert_to_bfloat(a, rounding, satfinite=satfinite)
    if target.kind == "f":
        return _convert_to_float(a, source, target, rounding, saturate=saturate, ftz=ftz, satfinite=satfinite)
    if source.kind == "f":
        return _convert_to_integer(a, source, target, rounding)
    if saturate:
        limits, source_limits = np.iinfo(target.dtype), np.iinfo(a.dtype)
        a = np.clip(a, max(limits.min, source_limits.min), min(limits.max, source_limits.max))
    return a.astype(target.dtype)


def _convert_to_bfloat(a: Array, rounding: str, *, satfinite: bool) -> Array:
    if rounding in TO_INTEGER:
        a, rounding = TO_INTEGER[rounding](a), "rn"
    if a.dtype.kind != "f":
        wide = a.astype(np.float64)
        a = round_to_odd(wide, _find_error(a, wide))
    bits = bfloat.encode_bits(a, rounding)
    return bfloat.clamp_infinities(bits) if satfinite else bits


def _convert_to_float(
    a: Array, source: Type, target: Type, rounding: str, *, saturate: bool, ftz: bool, satfinite: bool
) -> Array:
    if rounding in TO_INTEGER:
        result = np.copysign(TO_INTEGER[rounding](a), a).astype(target.dtype)
    else:
        result = a.astype(target.dtype)
        if rounding in MODES and (source.kind != "f" or target.size < source.size):
            result = round_toward(rounding, result, _find_error(a, result))
    if ftz and target.size == 4:
        result = flush(result)
    if saturate:
        result = clamp01(result)
    if satfinite:
        most = np.finfo(target.dtype).max
        result = np.clip(result, -most, most)
    return np.where(np.isnan(result), NAN_OF_HALF, result) if target.size == 2 else result
