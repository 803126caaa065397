"""Arithmetic rounded towards zero, minus or plus infinity (PTX ISA, ``.rz``, ``.rm``, ``.rp``).

The result is first rounded to nearest. If it is on the wrong side of the exact result, it moves to the adjacent float.
Up to float32, a float64 rounded to odd replaces the exact result: both are on the same side of every float32 (Boldo and
Melquiond, Emulation of FMA by rounding to odd, 2008). For float64, exact fractions tell the side, element by element:
such instructions are rare.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...lanes.warps import Array
from .floating import fused_multiply_add, round_to_odd, two_product, two_sum

MODES = ("rz", "rm", "rp")


def round_toward(mode: str, nearest: Array, difference: Array) -> Array:
    """Turn results of ``rn`` into those of ``rz``, ``rm`` or ``rp``: move some to the adjacent float.

    ``difference`` has the sign of the exact results minus ``nearest``.
    """
    infinity = nearest.dtype.type(np.inf)
    up = (difference > 0) & ((mode == "rp") | ((mode == "rz") & np.signbit(nearest)))
    down = (difference < 0) & ((mode == "rm") | ((mode == "rz") & ~np.signbit(nearest)))
    return np.where(up, np.nextafter(nearest, infinity), np.where(down, np.nextafter(nearest, -infinity), nearest))


class Operation(NamedTuple):
    """Number of operands of an operation, and its functions."""

    operands: int
    #: Function that rounds the result to nearest.
    nearest: Callable[..., Array]
    #: Function of float64 that rounds the result to odd.
    odd: Callable[..., Array]
    #: Function of fractions, the operands and a rounded result, with the sign of the exact minus the rounded result.
    error: Callable[..., Fraction]


def _odd_quotient(a: Array, b: Array) -> Array:
    quotient = a / b
    product, error = two_product(quotient, b)
    return round_to_odd(quotient, ((a - product) - error) * np.sign(b))


def _odd_root(a: Array) -> Array:
    root = np.sqrt(a)
    square, error = two_product(root, root)
    return round_to_odd(root, (a - square) - error)


def _odd_sum(a: Array, b: Array) -> Array:
    return round_to_odd(*two_sum(*np.broadcast_arrays(a, b)))


OPERATIONS: dict[str, Operation] = {
    "add": Operation(2, np.add, _odd_sum, lambda a, b, r: a + b - r),
    "sub": Operation(2, np.subtract, lambda a, b: _odd_sum(a, -b), lambda a, b, r: a - b - r),
    "mul": Operation(2, np.multiply, np.multiply, lambda a, b, r: a * b - r),
    "fma": Operation(3, fused_multiply_add, lambda a, b, c: _odd_sum(a * b, c), lambda a, b, c, r: a * b + c - r),
    "div": Operation(2, np.divide, _odd_quotient, lambda a, b, r: a / b - r),
    "rcp": Operation(
        1, lambda a: a.dtype.type(1) / a, lambda a: _odd_quotient(np.ones_like(a), a), lambda a, r: 1 / a - r
    ),
    "sqrt": Operation(1, np.sqrt, _odd_root, lambda a, r: a - r * r),
}
#: Tests for a negative or -0 summand: then a sum that is exactly zero is -0 if rounded to minus infinity.
_NEGATIVE: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: np.signbit(a) | np.signbit(b),
    "sub": lambda a, b: np.signbit(a) | ~np.signbit(b),
    "fma": lambda a, b, c: (np.signbit(a) ^ np.signbit(b)) | np.signbit(c),
}


def make_directed(name: str, mode: str) -> Callable[..., Array]:
    """Return the operation ``name`` of `OPERATIONS` with rounding ``rz``, ``rm`` or ``rp``, for float32 or float64."""
    operation = OPERATIONS[name]

    def round_directed(*operands: Array) -> Array:
        operands = tuple(np.broadcast_arrays(*operands))
        if operands[0].dtype == np.float64:
            nearest = np.asarray(operation.nearest(*operands))
            divides_by_zero = (operands[-1] == 0) & (name in ("div", "rcp"))
            overflow = np.isinf(nearest) & ~divides_by_zero
            difference = _find_error_sign(operation.error, operands, nearest, overflow)
        else:
            wide = operation.odd(*(operand.astype(np.float64) for operand in operands))
            nearest = wide.astype(operands[0].dtype)
            difference = wide - nearest.astype(np.float64)
        result = round_toward(mode, nearest, difference)
        if mode == "rm" and name in _NEGATIVE:
            is_negative_zero = (nearest == 0) & (difference == 0) & _NEGATIVE[name](*operands)
            result = np.where(is_negative_zero, -np.zeros_like(result), result)
        return result

    return round_directed


def _find_error_sign(
    error: Callable[..., Fraction], operands: tuple[Array, ...], nearest: Array, overflow: Array
) -> Array:
    """Compute the sign of the exact result minus ``nearest`` with fractions: -1.0, 0.0 or 1.0.

    Where ``overflow`` is true, it is opposite to the sign of ``nearest``. For other infinities and NaN, it is 0.
    """
    finite = np.logical_and.reduce([np.isfinite(operand) for operand in operands])
    difference = np.where(overflow & finite, -np.sign(nearest), 0.0)
    for index in zip(*np.nonzero(finite & np.isfinite(nearest)), strict=True):
        exact_error = error(*(Fraction(float(numbers[index])) for numbers in (*operands, nearest)))
        difference[index] = (exact_error > 0) - (exact_error < 0)
    return difference
