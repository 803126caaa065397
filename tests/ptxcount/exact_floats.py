"""Exact results of floating-point instructions, as fractions that are rounded once, and numbers to try."""

import math
from collections.abc import Callable
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import numpy.typing as npt


def assert_same(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """Assert equal bits, with all NaN equal."""
    assert got.dtype == expected.dtype
    bits = f"u{got.itemsize}"
    is_equal = (got.view(bits) == expected.view(bits)) | (np.isnan(got) & np.isnan(expected))
    assert is_equal.all(), (got[~is_equal][:4], expected[~is_equal][:4])


def list_values(dtype: np.dtype[Any], count: int) -> list[float]:
    limits = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 1.5, 0.1, -2.5, 3.0, inf, -inf, nan, float(limits.tiny), float(limits.max)]
    special += [-float(limits.max), float(limits.smallest_subnormal), float(limits.eps), 1 + float(limits.eps)]
    with np.errstate(over="ignore"):
        random = np.random.default_rng(3).normal(size=count) * 2.0 ** np.random.default_rng(4).integers(-12, 12, count)
    return [float(x) for x in np.array(special + random.tolist()).astype(dtype)]


#: Rounding mode of PTX -> function that rounds a fraction to an integer.
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "rn": round,  # Python rounds fractions to nearest even
    "rz": math.trunc,
    "rm": math.floor,
    "rp": math.ceil,
}


def round_fraction(exact: Fraction, dtype: np.dtype[Any], mode: str = "rn") -> float:
    """Round a fraction to a dtype, with only integer arithmetic."""
    if exact == 0:
        return 0.0
    limits = np.finfo(dtype)
    exponent = max(math.floor(_log2(abs(exact))), int(limits.minexp))
    unit = Fraction(2) ** (exponent - limits.nmant)
    multiple = ROUNDINGS[mode](exact / unit)
    result = multiple * unit
    if abs(result) > Fraction(float(limits.max)):
        away = mode in ("rn", "rp" if exact > 0 else "rm")
        return math.copysign(inf if away else float(limits.max), 1 if exact > 0 else -1)
    return math.copysign(float(result), 1 if exact > 0 else -1)


def _log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def multiply_add(a: float, b: float, c: float, dtype: np.dtype[Any]) -> float:
    """Return a * b + c, rounded once to a dtype."""
    if all(map(math.isfinite, (a, b, c))) and Fraction(a) * Fraction(b) + Fraction(c):
        return round_fraction(Fraction(a) * Fraction(b) + Fraction(c), dtype)
    if math.isfinite(a) and math.isfinite(b) and not math.isfinite(c):
        return c  # the product may exceed float64, but is finite
    with np.errstate(all="ignore"):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
