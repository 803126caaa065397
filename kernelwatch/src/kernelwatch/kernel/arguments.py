"""What an entry point takes, in its own order: arrays, each with a dtype and a direction, and values.

`inputs`, `outputs`, `in_and_out` and `scalar` declare them. For one launch they become `ArrayArgument`s and values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import ml_dtypes  # noqa: F401 -- teaches NumPy the name "bfloat16"
import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import expressions

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Largest integer argument, and largest address offset in bytes, that kernels' signed 64-bit integers reach.
MAX_BYTES = 2**63 - 1

#: What arrays may hold, but for what a function of the user makes.
NAMED = ("bits", "exact", "random", "zeros")


class Direction(Enum):
    """What a kernel does with an array."""

    IN = "in"
    OUT = "out"
    IN_AND_OUT = "in and out"


@dataclass(frozen=True, eq=False)
class ArrayParameter:
    """An array that a kernel takes.

    Parameters
    ----------
    name : str
        As references and messages call it.
    shape : str or callable
        Lengths with spaces between, each an expression over the extents: "h w", "2*n+1"; or a function of extents.
    direction : Direction
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

    @property
    def is_written(self) -> bool:
        """Whether the kernel writes to it."""
        return self.direction is not Direction.IN

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


@dataclass(frozen=True, eq=False)
class ArrayArgument:
    """An array of a launch: as `ArrayParameter`, with its shape, its dtype and the extents.

    `limit` is what its elements are indices below; `place` tells an input whose content repeats a block from others.
    """

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    direction: Direction
    values: str | Callable[..., Array]
    ulp: float | None = None
    limit: int | None = None
    seed: int = 0
    extents: Mapping[str, Any] | None = None
    place: int = 0

    @property
    def is_written(self) -> bool:
        """Whether the kernel writes to it."""
        return self.direction is not Direction.IN

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    @property
    def has_own_content(self) -> bool:
        """Whether it holds what only the commit's process can make, not a block that repeats."""
        return self.values not in ("bits", "exact") or self.limit is not None


@dataclass(frozen=True, eq=False)
class ScalarArgument:
    """A value of a launch; without a dtype it has what the entry point takes."""

    name: str
    value: Any
    dtype: np.dtype[Any] | None = None

    def typed(self, dtype: np.dtype[Any] | None = None) -> np.generic:
        """Return it as NumPy's own.

        Parameters
        ----------
        dtype : dtype, optional
            What the entry point takes.

        Raises
        ------
        ArgumentError
            It does not fit.
        """
        kind = self.dtype or dtype
        if self.dtype is None and dtype is not None and dtype.kind == "u" and self.value < 0:
            kind = np.dtype(f"i{dtype.itemsize}")  # PTX does not tell them apart
        if kind is None:
            raise ArgumentError(f"{self.name}: the entry point takes a struct; give scalar({self.name!r}, dtype=...)")
        try:
            found = np.array(self.value, dtype=kind)
            fits = kind.kind not in "iu" or int(found) == self.value
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits or found.shape:
            raise ArgumentError(f"{self.name}: {self.value!r} is no {kind}, which the entry point takes")
        one: np.generic = found[()]  # type: ignore[assignment]
        return one


Parameter = ArrayParameter | ScalarParameter

#: Of what an entry point takes at one place: its bytes, its alignment, and its dtype unless it is a struct.
Taken = tuple[int, int, np.dtype[Any] | None]


def inputs(name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any) -> ArrayParameter:
    """Declare an array that the kernel reads. A write to it is an error. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, Direction.IN, dtype, **more)


def outputs(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any
) -> ArrayParameter:
    """Declare an array that the kernel writes. Before a launch it holds poison. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, Direction.OUT, dtype, **more)


def in_and_out(
    name: str, shape: str | Callable[..., Shape], dtype: DTypeLike | None = None, **more: Any
) -> ArrayParameter:
    """Declare an array that the kernel reads and changes. Parameters as of `ArrayParameter`."""
    return ArrayParameter(name, shape, Direction.IN_AND_OUT, dtype, **more)


def scalar(
    name: str, dtype: DTypeLike | None = None, value: Any = None, *, least: int | None = None
) -> ScalarParameter:
    """Declare a number or a struct that the kernel takes by value. Parameters as of `ScalarParameter`."""
    return ScalarParameter(name, dtype, value, least)


def declared(parameters: Any) -> tuple[Parameter, ...]:
    """Return parameters, of which a text stands for a scalar."""
    return tuple(ScalarParameter(each) if isinstance(each, str) else each for each in parameters)


def laid_out(bound: Sequence[ArrayArgument | ScalarArgument], taken: Sequence[Taken]) -> tuple[bytes, tuple[int, ...]]:
    """Lay arguments out as an entry point takes them.

    Parameters
    ----------
    bound : sequence
        The arguments in its order.
    taken : sequence of Taken
        What it takes.

    Returns
    -------
    tuple
        The bytes, zeros for addresses, and where addresses belong.

    Raises
    ------
    ArgumentError
        It takes other arguments.
    """
    if len(taken) != len(bound):
        raise ArgumentError(f"the entry point takes {len(taken)} arguments; declared are {len(bound)}")
    found, places = bytearray(), []
    for one, (size, alignment, dtype) in zip(bound, taken, strict=True):
        found += bytes(-len(found) % alignment)
        if isinstance(one, ArrayArgument):
            places.append(len(found))
        value = bytes(8) if isinstance(one, ArrayArgument) else one.typed(dtype).tobytes()
        if len(value) != size:
            raise ArgumentError(f"{one.name}: the entry point takes {size} bytes there; given are {len(value)}")
        found += value
    return bytes(found), tuple(places)


def dtype_of(given: DTypeLike) -> np.dtype[Any]:
    """Return a dtype. Raises UnknownDtypeError if there is none such, or it holds Python objects."""
    try:
        found = np.dtype(given)
    except TypeError:
        raise UnknownDtypeError(f"dtype {given!r} is not a NumPy dtype") from None
    if found.hasobject:
        raise UnknownDtypeError(f"dtype {found} holds Python objects")
    return found


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether elements are real or complex numbers."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


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
