"""What an entry point takes, in its own order: arrays, each with a dtype and a direction, and values.

`inputs`, `outputs`, `in_and_out` and `scalar` declare them. For one launch they become `ArrayArgument`s and values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import (
    MAX_BYTES,
    Array,
    ArrayArgument,
    Direction,
    ScalarArgument,
    Shape,
    dtype_of,
    is_real,
)

#: What arrays may hold, but for what a function of the user makes.
NAMED = ("bits", "exact", "random", "zeros")


@dataclass(frozen=True, eq=False)
class ArrayParameter:
    """An array that a kernel takes.

    Parameters
    ----------
    name : str
        As references and messages call it.
    shape : str or callable
        Lengths with spaces between, each an expression over the extents: "h w", "2*n+1"; or a function of extents.
    direction : {"in", "out", "in and out"}
        What the kernel does with it.
    dtype : dtype, optional
        Its elements' NumPy dtype, which may be a structured one; that which is swept if not given.
    values : {"bits", "exact", "random", "zeros"} or callable
        What it holds before the launch. A function takes what it names of extents, `shape` and `dtype`.
    index : str, optional
        The length that its elements are indices into.
    seed : int
        Of random values and of indices.
    ulp : float or mapping, optional
        How far an output may lie from its reference, in units of the last place of the larger of it and 1; perhaps only
        in some dtypes, by name. All others are compared bit for bit.
    """

    name: str
    shape: str | Callable[..., Shape]
    direction: Direction
    dtype: DTypeLike | None = None
    values: str | Callable[..., Array] = ""
    index: str = ""
    seed: int = 0
    ulp: float | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.values, str) and self.values not in ("", *NAMED):
            raise ArgumentError(f"{self.name}: values are {', '.join(NAMED)} or a function; given: {self.values!r}")

    def extents(self) -> list[str]:
        """Return the names of the extents that its shape and its indices need."""
        if callable(self.shape):
            return expressions.asked(self.shape)
        return [name for text in (*self.shape.split(), *filter(None, [self.index])) for name in expressions.names(text)]

    def of(self, swept: DTypeLike, extents: Mapping[str, Any]) -> ArrayArgument:
        """Return the array of a launch. Raises ArgumentError if a length is none."""
        texts = self.shape if callable(self.shape) else self.shape.split()
        found = (
            expressions.called(texts, extents) if callable(texts) else [expressions.value(x, extents) for x in texts]
        )
        if not found or not all(isinstance(length, int | np.integer) and length > 0 for length in found):
            raise ArgumentError(
                f"{self.name}: the shape {self.shape!r} is {tuple(found)} here; lengths are positive integers"
            )
        shape = tuple(map(int, found))
        dtype = dtype_of(swept if self.dtype is None else self.dtype)
        if (needed := math.prod(shape) * dtype.itemsize) > MAX_BYTES:
            raise ArgumentError(
                f"{self.name}: an array of shape {shape} and {dtype.itemsize} bytes an element takes {needed} bytes; "
                f"signed 64-bit addressing allows {MAX_BYTES}; use smaller arguments"
            )
        values: str | Callable[..., Array] = self.values or ("exact" if is_real(dtype) else "bits")
        limit = expressions.value(self.index, extents) if self.index else None
        ulp = self.ulp.get(dtype.name) if isinstance(self.ulp, Mapping) else self.ulp
        return ArrayArgument(self.name, shape, dtype, self.direction, values, ulp, limit, self.seed, dict(extents))


@dataclass(frozen=True, eq=False)
class ScalarParameter:
    """A value that a kernel takes: an integer or a float of any C type, or a struct.

    Parameters
    ----------
    name : str
        As references and messages call it.
    dtype : dtype, optional
        Its NumPy dtype; what the entry point takes at that place if not given.
    value : str, number, tuple or callable, optional
        A text is an expression over the extents; a function takes extents by their names. Without, the launch gives it.
    least : int, optional
        The smallest integer allowed; without, what the launch gives need not be an integer.
    """

    name: str
    dtype: DTypeLike | None = None
    value: Any = None
    least: int | None = None

    def extents(self) -> list[str]:
        """Return the names that a launch gives."""
        if callable(self.value):
            return expressions.asked(self.value)
        text = self.name if self.value is None else self.value
        return expressions.names(text) if isinstance(text, str) else []

    def of(self, extents: Mapping[str, Any]) -> ScalarArgument:
        """Return the value of a launch."""
        if callable(self.value):
            found = expressions.called(self.value, extents)
        else:
            text = self.name if self.value is None else self.value
            found = expressions.value(text, extents) if isinstance(text, str) else text
        return ScalarArgument(self.name, found, None if self.dtype is None else dtype_of(self.dtype))


Parameter = ArrayParameter | ScalarParameter


def inputs(name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any) -> ArrayParameter:
    """Declare an array that the kernel reads. A write to it is an error. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, "in", dtype, **more)


def outputs(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any
) -> ArrayParameter:
    """Declare an array that the kernel writes. Before a launch it holds poison. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, "out", dtype, **more)


def in_and_out(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any
) -> ArrayParameter:
    """Declare an array that the kernel reads and changes. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, "in and out", dtype, **more)


#: Declares a number or a struct that the kernel takes by value.
scalar = ScalarParameter


def declared(parameters: Any) -> tuple[Parameter, ...]:
    """Return parameters, of which a text stands for a scalar."""
    return tuple(ScalarParameter(each) if isinstance(each, str) else each for each in parameters)
