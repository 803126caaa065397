"""The parameters of a kernel's entry point: arrays, with a dtype and a direction, and scalars.

`inputs`, `outputs`, `in_and_out` and `scalar` declare them. A launch binds them to `ArrayArgument`s and
`ScalarArgument`s.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import (
    MAX_INT64,
    Array,
    ArrayArgument,
    Direction,
    ScalarArgument,
    Shape,
    to_dtype,
)

#: Names of generated contents; a user's function can generate others.
VALUE_KINDS = ("bits", "exact", "random", "zeros")


@dataclass(frozen=True, eq=False)
class ArrayParameter:
    """An array parameter of a kernel.

    Parameters
    ----------
    name : str
        Name in references and messages.
    shape : str or callable
        One expression over the extents for each dimension, separated by spaces: "h w", "2*n+1"; or a function of
        extents.
    direction : {"in", "out", "in and out"}
        The kernel reads the array, writes it, or reads and writes it.
    dtype : dtype, optional
        NumPy dtype of the elements, which may be structured; by default the swept dtype.
    values : {"bits", "exact", "random", "zeros"} or callable
        Content before the launch, except of outputs and indices. By default "exact" for bfloat16 and NumPy's own
        floating-point and complex numbers, else "bits". A function gets those of the extents, `shape` and `dtype` that
        its parameters name.
    index : str, optional
        If the elements are indices: the length of the indexed array, an expression. The indices are below that length.
    seed : int
        Seed of random values and of indices.
    ulp : float or mapping, optional
        Tolerance of an output, in ulps of max(|reference|, 1); or a mapping from dtype to tolerance. Other outputs are
        compared bit for bit.
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
        if not isinstance(self.shape, str | Callable):
            allowed = 'a string of expressions, such as "h w", or a function'
            raise ArgumentError(f"{self.name}: shape must be {allowed}; given: {self.shape!r}")
        if isinstance(self.values, str) and self.values not in ("", *VALUE_KINDS):
            raise ArgumentError(
                f"{self.name}: values must be one of {', '.join(VALUE_KINDS)}, or a function; given: {self.values!r}"
            )
        tolerances = self.ulp.values() if isinstance(self.ulp, Mapping) else [self.ulp or 0.0]
        if not all(isinstance(ulp, Real) and ulp >= 0 for ulp in tolerances):
            allowed = "a number of at least 0, or a mapping from dtypes to such numbers"
            raise ArgumentError(f"{self.name}: ulp must be {allowed}; given: {self.ulp!r}")

    def extent_names(self) -> list[str]:
        """Return the names of the extents in the array's shape and `index`."""
        if callable(self.shape):
            names = expressions.list_parameters(self.shape)
        else:
            names = [name for text in self.shape.split() for name in expressions.find_names(text)]
        return [*names, *expressions.find_names(self.index)] if self.index else names

    def bind(self, swept: DTypeLike, extents: Mapping[str, Any]) -> ArrayArgument:
        """Return the array of a launch, for the swept dtype and the extents.

        Raises ArgumentError if a length or the limit of indices is not a positive integer, the dtype cannot hold the
        indices, or 64-bit addresses do not suffice.
        """
        shape = self._compute_shape(extents)
        dtype = to_dtype(swept if self.dtype is None else self.dtype)
        needed = math.prod(shape) * dtype.itemsize
        if needed > MAX_INT64:
            raise ArgumentError(
                f"{self.name}: an array of shape {shape} with {dtype.itemsize} bytes per element has {needed} bytes; "
                f"signed 64-bit addressing allows {MAX_INT64}; use smaller arguments"
            )
        is_real_or_complex = dtype.kind in "fc" or dtype.name == "bfloat16"
        values: str | Callable[..., Array] = self.values or ("exact" if is_real_or_complex else "bits")
        limit = self._compute_limit(dtype, extents) if self.index else None
        ulp = self.ulp.get(dtype.name) if isinstance(self.ulp, Mapping) else self.ulp
        return ArrayArgument(self.name, shape, dtype, self.direction, values, ulp, limit, self.seed, dict(extents))

    def _compute_shape(self, extents: Mapping[str, Any]) -> Shape:
        if callable(self.shape):
            result = expressions.evaluate_function(self.shape, extents)
            lengths = list(result) if isinstance(result, Iterable) else [result]
        else:
            lengths = [expressions.evaluate(text, extents) for text in self.shape.split()]
        if not lengths or not all(isinstance(length, int | np.integer) and length > 0 for length in lengths):
            shape_text = f"{tuple(lengths)}{expressions.format_extents(extents)}"
            raise ArgumentError(f"{self.name}: the shape is {shape_text}; lengths must be positive integers")
        return tuple(map(int, lengths))

    def _compute_limit(self, dtype: np.dtype[Any], extents: Mapping[str, Any]) -> int:
        """Return the length of the array that the elements index."""
        limit = expressions.evaluate(self.index, extents)
        if not isinstance(limit, int) or limit < 1:
            limit_text = f"index={self.index!r} is {limit}{expressions.format_extents(extents)}"
            raise ArgumentError(f"{self.name}: {limit_text}; it must be an integer of at least 1")
        if dtype.kind in "iu" and limit - 1 > np.iinfo(dtype).max:
            raise ArgumentError(f"{self.name}: {dtype} cannot hold indices below {limit}; declare a larger dtype=")
        return limit


@dataclass(frozen=True, eq=False)
class ScalarParameter:
    """A parameter that a kernel takes by value: an integer or a float of any C type, or a struct.

    Parameters
    ----------
    name : str
        Name in references and messages.
    dtype : dtype, optional
        NumPy dtype; by default the type of the entry point.
    value : str, number, tuple or callable, optional
        The value. A string is an expression over the extents; a function gets the extents that its parameters name. By
        default each launch sets the value.
    least : int, optional
        Smallest integer allowed; by default the value need not be an integer.
    """

    name: str
    dtype: DTypeLike | None = None
    value: Any = None
    least: int | None = None

    def extent_names(self) -> list[str]:
        """Return the names of the extents in the scalar's value."""
        if callable(self.value):
            return expressions.list_parameters(self.value)
        text = self.name if self.value is None else self.value
        return expressions.find_names(text) if isinstance(text, str) else []

    def bind(self, extents: Mapping[str, Any]) -> ScalarArgument:
        """Return the scalar of a launch, with its value for the extents."""
        if callable(self.value):
            value = expressions.evaluate_function(self.value, extents)
        else:
            text = self.name if self.value is None else self.value
            value = expressions.evaluate(text, extents) if isinstance(text, str) else text
        return ScalarArgument(self.name, value, None if self.dtype is None else to_dtype(self.dtype))


Parameter = ArrayParameter | ScalarParameter


def inputs(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **options: Any
) -> ArrayParameter:
    """Declare an array that the kernel reads. A write to the array is an error.

    `ArrayParameter` explains the parameters.
    """
    return ArrayParameter(name, shape, "in", dtype, **options)


def outputs(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **options: Any
) -> ArrayParameter:
    """Declare an array that the kernel writes. The array is poisoned before a launch.

    `ArrayParameter` explains the parameters.
    """
    return ArrayParameter(name, shape, "out", dtype, **options)


def in_and_out(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **options: Any
) -> ArrayParameter:
    """Declare an array that the kernel reads and changes. `ArrayParameter` explains the parameters."""
    return ArrayParameter(name, shape, "in and out", dtype, **options)


#: Declaration of a number or a struct that the kernel takes by value.
scalar = ScalarParameter


def to_parameters(parameters: Any) -> tuple[Parameter, ...]:
    """Return the parameters as a tuple; a string becomes a scalar of this name."""
    return tuple(ScalarParameter(parameter) if isinstance(parameter, str) else parameter for parameter in parameters)
