"""Floating-point instructions on NumPy arrays (PTX ISA, "Floating-Point"), IEEE 754, rounded to nearest even.

Instructions marked ``.approx`` or ``.full`` have an error bound on hardware; here they are rounded from float64.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ...lanes.warps import Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _split_float(a: Array) -> tuple[Array, Array]:
    scaled = a * 134217729.0  # 2**27 + 1 (Veltkamp)
    high = scaled - (scaled - a)
    return high, a - high


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product and its error (Dekker)."""
    product, (ah, al), (bh, bl) = a * b, _split_float(a), _split_float(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def round_to_odd(total: Array, error: Array) -> Array:
    """Round a float64 sum to odd, from the rounded sum and its error (Boldo, Melquiond).

    An inexact sum with an even last bit moves to the adjacent number on the side of the error.
    """
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error) & (bits & 1 == 0)
    return (bits + np.where(inexact, step, 0)).view(np.float64)


#: The smallest normal float32.
TINY = np.finfo(np.float32).tiny
#: Last bits of a float64 halfway between two float32, as the first bits of an integer.
_MIDPOINT = np.int64(-1 << 63)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c with one rounding (Boldo and Melquiond, Emulation of FMA by rounding to odd, 2008)."""
    if a.dtype == np.float32:
        return _multiply_add_singles(a, b, c)
    if a.dtype == np.float64:
        return _multiply_add_doubles(*np.broadcast_arrays(a, b, c))
    return _multiply_add_odd(a, b, c).astype(a.dtype)


def _multiply_add_odd(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c of float16 or float32 as float64, rounded to odd, so that it can be rounded to their type."""
    product = a.astype(np.float64) * b.astype(np.float64)  # exact
    return round_to_odd(*two_sum(*np.broadcast_arrays(product, c.astype(np.float64))))


def _multiply_add_singles(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c of float32 by rounding twice; repeat with `_multiply_add_odd` where this may be wrong."""
    total = np.asarray(a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64))
    is_small: Array | bool = False
    try:
        with np.errstate(under="raise"):
            rounded = total.astype(np.float32)
    except FloatingPointError:  # an inexact subnormal float32, which rounds at another bit; one that becomes 0 is exact
        rounded = total.astype(np.float32)
        is_small = (rounded != 0) & (np.abs(rounded) <= TINY)
    tails = total.view(np.int64)
    tails <<= 35  # the bits behind those of a float32
    if is_small is not False or tails.min() == _MIDPOINT:
        is_doubtful = is_small | (tails == _MIDPOINT)
        operands = (operand[is_doubtful] for operand in np.broadcast_arrays(a, b, c))
        rounded[is_doubtful] = _multiply_add_odd(*operands).astype(np.float32)
    return rounded


def _multiply_add_doubles(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c of float64 from sums and products with errors; from fractions where these may overflow."""
    high, low = two_product(a, b)
    upper, lower = two_sum(c, low)
    top, remainder = two_sum(high, upper)
    result = np.array(top + round_to_odd(remainder + lower, two_sum(remainder, lower)[1]))
    is_safe = (high != 0) & (top != 0)  # neither overflow nor underflow in the steps above
    for operand in (a, b, c):
        is_safe &= np.abs(np.frexp(operand)[1]) < 400
    # Correctly rounded by NumPy: a single product or sum, and non-finite results.
    are_factors_finite = np.isfinite(a) & np.isfinite(b)
    is_single = (a == 0) | (b == 0) | ((c == 0) & (high != 0)) | ~are_factors_finite | ~np.isfinite(c)
    result[is_single] = np.where(are_factors_finite & ~np.isfinite(c), c, high + c)[is_single]
    for index in zip(*np.nonzero(~is_safe & ~is_single), strict=True):
        result[index] = _multiply_add_fractions(float(a[index]), float(b[index]), float(c[index]))
    return result


def _multiply_add_fractions(a: float, b: float, c: float) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if not total:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    try:
        return total.numerator / total.denominator  # Python rounds this quotient correctly
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


def _order_zeros(choose: Any, combine_bits: Any) -> Callable[[Array, Array], Array]:
    """Wrap a NumPy minimum or maximum, so that two zeros give their bitwise OR (for -0) or AND (for +0)."""

    def choose_ordered(a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            return np.asarray(choose(a, b))
        bits = f"u{a.dtype.itemsize}"
        zero = np.asarray(combine_bits(a.view(bits), b.view(bits))).view(a.dtype)
        return np.where((a == 0) & (b == 0), zero, choose(a, b))

    return choose_ordered


#: A number wins over NaN, and -0 is less than +0 (PTX ISA ``min``, ``max``); the ``nan`` forms return NaN instead.
minimum = _order_zeros(np.fmin, np.bitwise_or)
maximum = _order_zeros(np.fmax, np.bitwise_and)
minimum_nan = _order_zeros(np.minimum, np.bitwise_or)
maximum_nan = _order_zeros(np.maximum, np.bitwise_and)


def wrap_xorsign(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Wrap a minimum or maximum for ``.xorsign.abs``: choose a magnitude, and give it the product of the signs."""

    def compute_signed(a: Array, b: Array) -> Array:
        magnitude = np.abs(compute(np.abs(a), np.abs(b)))
        return np.asarray(np.where(np.signbit(a) ^ np.signbit(b), -magnitude, magnitude))

    return compute_signed


def wrap_in_float64(function: Callable[..., Any]) -> Callable[..., Array]:
    """Wrap a function, so that it computes in float64 and rounds to the dtype of its first argument."""

    def evaluate(*arguments: Array) -> Array:
        result: Array = np.asarray(function(*(x.astype(np.float64) for x in arguments)))
        return result.astype(arguments[0].dtype)

    return evaluate


def join_halves(low: Array, high: Array) -> Array:
    """Join two 16-bit integers to a 32-bit word."""
    return np.asarray(low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16)))


def wrap_for_pairs(compute: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap a function of 16-bit values, so that it computes on both halves of 32-bit words."""

    def evaluate(*words: Array) -> Array:
        low = compute(*((word & 0xFFFF).astype(np.uint16) for word in words))
        high = compute(*((word >> 16).astype(np.uint16) for word in words))
        return join_halves(low, high)

    return evaluate


def wrap_for_halves(compute: Callable[..., Any], dtype: str = "f2") -> Callable[..., Array]:
    """Wrap a function of float16, or of ``dtype``, so that it computes on both halves of 32-bit words (``f16x2``)."""

    def compute_bits(*bits: Array) -> Array:
        return np.asarray(compute(*(operand.view(dtype) for operand in bits))).view(np.uint16)

    return wrap_for_pairs(compute_bits)


def flush(a: Array, tiny: float | None = None) -> Array:
    """Apply ``.ftz``: subnormal numbers become zeros of the same sign. float64 has no such form.

    ``tiny`` is the least normal magnitude, by default of the array's dtype.
    """
    least = np.finfo(a.dtype).tiny if tiny is None else tiny
    return np.asarray(np.where(np.abs(a) < least, np.copysign(a.dtype.type(0), a), a))


def clamp01(a: Array) -> Array:
    """Apply ``.sat``: clamp to [0, 1]; NaN becomes +0."""
    return np.asarray(np.where(a > 0, np.fmin(a, a.dtype.type(1)), a.dtype.type(0)))


def apply_relu(a: Array) -> Array:
    """Apply ``.relu``: negative numbers become +0; NaN stays."""
    return np.asarray(np.where(a > 0, a, np.where(np.isnan(a), a, a.dtype.type(0))))
