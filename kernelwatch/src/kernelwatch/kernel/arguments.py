"""A launch's arguments as Python's own numbers, within the bounds of the kernels'."""

from __future__ import annotations

import math
import operator

import numpy as np

from kernelwatch.errors import ArgumentError

#: Largest integer argument, and largest address offset in bytes, that the kernels' signed 64-bit integers reach.
MAX_BYTES = 2**63 - 1


def integer(kernel: str, name: str, value: object, minimum: int) -> int:
    """Return an argument as a Python integer, which no arithmetic overflows, as NumPy's would.

    Raises
    ------
    ArgumentError
        The value is not an integer, or not between `minimum` and MAX_BYTES.
    """
    try:
        found = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None or found < minimum:
        raise ArgumentError(f"{kernel}: {name} must be an integer of at least {minimum}; given: {value!r}")
    if found > MAX_BYTES:
        raise ArgumentError(f"{kernel}: {name} must fit a signed 64-bit integer, at most {MAX_BYTES}; given: {found}")
    return found


def real(kernel: str, name: str, value: object) -> float:
    """Return a floating-point argument.

    Raises
    ------
    ArgumentError
        The value is not a number, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ArgumentError(f"{kernel}: {name} must be a finite number; given: {value!r}")
    return float(value)
