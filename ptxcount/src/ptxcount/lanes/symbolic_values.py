"""Values of a register for a chunk of thread blocks.

A value is an array of shape (1 or blocks, 1 or threads). It has one row if it depends only on ``threadIdx``, one column
if only on ``blockIdx``, and one element if it is uniform. An index such as ``blockIdx.x * 32 + threadIdx.x`` is a `Sum`
of a row and a column. It stays a `Sum` through additions and multiplications by uniform values. So addresses are
expanded per thread only at loads and stores. Arithmetic is exact modulo 2^width. Comparisons and widening first check
that the sum did not wrap.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..ptx.program import TYPES, Type
from .warps import Array

_SIGNED = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_ZERO = {size: np.zeros((1, 1), dtype) for size, dtype in _SIGNED.items()}


class Sum:
    """An integer value: a column (blocks, 1) plus a row (1, threads), both of the same signed dtype."""

    __slots__ = ("_bounds", "block", "thread")

    def __init__(self, block: Array, thread: Array) -> None:
        self.block, self.thread = block, thread
        self._bounds: tuple[int, int] | None = None

    def bounds(self) -> tuple[int, int]:
        """Return the least and the greatest value, as if the sum did not wrap."""
        if self._bounds is None:
            block, thread = self.block, self.thread
            self._bounds = int(block.min()) + int(thread.min()), int(block.max()) + int(thread.max())
        return self._bounds


Value = Array | Sum


def dense(value: Value) -> Array:
    """Return a value as an array; add up a `Sum`."""
    return value.block + value.thread if isinstance(value, Sum) else value


def add_column_row(block: Array, thread: Array) -> Value:
    """Return a column plus a row: an array if either has one element, else a `Sum`."""
    return block + thread if block.size == 1 or thread.size == 1 else Sum(block, thread)


def split_sum(value: Value, size: int) -> Sum | None:
    """Split a value of ``size``-byte integers into a column plus a row; None for several rows and columns."""
    if isinstance(value, Sum):
        return value
    signed = value.view(_SIGNED[size])
    if signed.shape[1] == 1:
        return Sum(signed, _ZERO[size])
    return Sum(_ZERO[size], signed) if signed.shape[0] == 1 else None


def split_exact(value: Value, kind: Type) -> Sum | None:
    """Split a value by `split_sum`; return None also if the sum may overflow the integer type ``kind``.

    Parts are read as signed, so unsigned values from half of the range on also give None.
    """
    split = split_sum(value, kind.size)
    if split is not None:
        low, high = split.bounds()
        least, most = (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1)) if kind.kind == "s" else (0, 2**kind.bits)
        if least <= low and high < most:
            return split
    return None


def _add_or_subtract(compute: Callable[[Array, Array], Array], kind: Type, left: Value, right: Value) -> Value | None:
    a, b = split_sum(left, kind.size), split_sum(right, kind.size)
    return add_column_row(compute(a.block, b.block), compute(a.thread, b.thread)) if a and b else None


def _multiply(kind: Type, left: Value, right: Value) -> Value | None:
    """Multiply the column and row of one value by the other; None if neither is uniform, or `split_sum` fails."""
    if isinstance(right, Sum) or right.size > 1:
        left, right = right, left
    a = split_sum(left, kind.size)
    if a is None or isinstance(right, Sum) or right.size > 1:
        return None
    factor = right.view(_SIGNED[kind.size])
    return add_column_row(a.block * factor, a.thread * factor)


def _multiply_add(kind: Type, left: Value, right: Value, addend: Value) -> Value | None:
    product = _multiply(kind, left, right)
    return None if product is None else _add_or_subtract(operator.add, kind, product, addend)


def _shift_left(kind: Type, left: Value, amount: Value) -> Value | None:
    a = split_sum(left, kind.size)
    if a is None or isinstance(amount, Sum) or amount.size > 1 or int(amount.item()) >= kind.bits:
        return None
    places = amount.astype(_SIGNED[kind.size])
    return add_column_row(a.block << places, a.thread << places)


def _multiply_wide(kind: Type, left: Value, right: Value) -> Value | None:
    wide = TYPES[f"{kind.kind}{2 * kind.bits}"]
    a, b = (convert_sum(factor, kind, wide) for factor in (left, right))
    return None if a is None or b is None else _multiply(wide, a, b)


#: Functions that compute instructions without adding up sums, by name; they return None if that is impossible.
SUM_RULES: dict[str, Callable[..., Value | None]] = {
    "add": partial(_add_or_subtract, operator.add),
    "sub": partial(_add_or_subtract, operator.sub),
    "mul.lo": _multiply,
    "mad.lo": _multiply_add,
    "shl": _shift_left,
    "mul.wide": _multiply_wide,
}


def convert_sum(value: Value, source: Type, target: Type) -> Value | None:
    """Convert a value between integer types (PTX ISA ``cvt``) without adding up a sum; None if that is impossible."""
    a = split_sum(value, source.size) if target.size <= source.size else split_exact(value, source)
    if a is None:
        return None
    dtype = _SIGNED[target.size]
    return add_column_row(a.block.astype(dtype), a.thread.astype(dtype))


#: Comparison operators by their PTX names.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def compare_sums(name: str, kind: Type, left: Value, right: Value) -> Array | None:
    """Compare integers without adding up sums. Return a mask; None if `split_exact` fails, or a sum is too large."""
    a = split_exact(left, kind)
    b = None if a is None else split_exact(right, kind)
    if a is None or b is None:
        return None
    compare = COMPARISONS[name]
    (a_low, a_high), (b_low, b_high) = a.bounds(), b.bounds()
    low, high = a_low - b_high, a_high - b_low  # bounds of left minus right
    outcomes = {compare(low, 0), compare(high, 0)}
    if low < 0 < high:
        outcomes.add(compare(0, 0))
    if len(outcomes) == 1:  # the same for all differences within the bounds
        return np.full((1, 1), outcomes.pop())
    if max(abs(bound) for bound in (a_low, a_high, b_low, b_high)) >= 2**61:
        return None
    # a.thread + a.block < b.thread + b.block, rearranged: only the comparison has (blocks, threads) elements.
    wide = np.int64
    difference = b.block.astype(wide) - a.block.astype(wide)
    result: Array = compare(a.thread.astype(wide) - b.thread.astype(wide), difference)
    return result
