"""The arguments of a launch: arrays and values, and how they lie in the memory that an entry point takes."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes  # noqa: F401 -- teaches NumPy the name "bfloat16"
import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import ArgumentError, UnknownDtypeError

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Largest integer argument, and largest address offset in bytes, that kernels' signed 64-bit integers reach.
MAX_BYTES = 2**63 - 1


#: What a kernel does with an array.
Direction = Literal["in", "out", "in and out"]


@dataclass(frozen=True, eq=False)
class ArrayArgument:
    """An array of a launch: as `ArrayParameter`, with its shape, its dtype and the extents.

    `limit` is what its elements are indices below; `ordinal` tells an input whose content repeats a block from others.
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
    ordinal: int = 0

    @property
    def is_written(self) -> bool:
        """Whether the kernel writes to it."""
        return self.direction != "in"

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
        """Return it as NumPy's own, of what the entry point takes. Raises ArgumentError where it does not fit."""
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


#: Of what an entry point takes at one place: its bytes, its alignment, and its dtype unless it is a struct.
Taken = tuple[int, int, np.dtype[Any] | None]


def laid_out(bound: Sequence[ArrayArgument | ScalarArgument], taken: Sequence[Taken]) -> tuple[bytes, tuple[int, ...]]:
    """Return arguments as an entry point takes them: bytes, zeros for addresses, and where addresses belong.

    Raises ArgumentError if it takes others.
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


def filled(parameters: bytes, places: Sequence[int], addresses: Sequence[int]) -> bytes:
    """Return what `laid_out` gave with addresses in their places."""
    found = bytearray(parameters)
    for place, address in zip(places, addresses, strict=True):
        struct.pack_into("Q", found, place, address)
    return bytes(found)


def dtype_of(given: DTypeLike) -> np.dtype[Any]:
    """Return a dtype. Raises UnknownDtypeError if there is none such, or it holds Python objects."""
    try:
        found = np.dtype(given if given is not None else "None")  # NumPy takes None for float64
    except TypeError:
        raise UnknownDtypeError(f"dtype {given!r} is not a NumPy dtype") from None
    if found.hasobject:
        raise UnknownDtypeError(f"dtype {found} holds Python objects")
    return found


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether elements are real or complex numbers."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def integer(kernel: str, name: str, value: object, minimum: int) -> int:
    """Return an argument as a Python integer, from `minimum` to MAX_BYTES, or raise ArgumentError."""
    try:
        found = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None or found < minimum:
        raise ArgumentError(f"{kernel}: {name} must be an integer of at least {minimum}; given: {value!r}")
    if found > MAX_BYTES:
        raise ArgumentError(f"{kernel}: {name} must fit a signed 64-bit integer, at most {MAX_BYTES}; given: {found}")
    return found
