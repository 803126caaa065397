"""The arguments of a launch: arrays and values, and their layout in the entry point's parameter memory."""

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import ArgumentError, NoSuchDtypeError, UnknownArgumentError
from ptxcount.util.grammar import count_noun

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Largest integer argument, and largest address offset in bytes: kernels use signed 64-bit integers.
MAX_INT64 = 2**63 - 1

#: Direction of an array, as seen by the kernel.
Direction = Literal["in", "out", "in and out"]


@dataclass(frozen=True, eq=False)
class ArrayArgument:
    """An array of a launch: an `ArrayParameter` with its shape, its dtype and the launch's extents.

    If the elements are indices, they are below `limit`. `ordinal` is the array's index among the arrays that the kernel
    reads. The generated content depends on it, so that long inputs of a launch differ.
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
        """True if the kernel writes to the array."""
        return self.direction != "in"

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    @property
    def has_own_content(self) -> bool:
        """True if the content does not repeat a block: indices, and values other than "bits" and "exact"."""
        return self.values not in ("bits", "exact") or self.limit is not None


@dataclass(frozen=True, eq=False)
class ScalarArgument:
    """A scalar value of a launch; without a dtype, its type is that of the entry point."""

    name: str
    value: Any
    dtype: np.dtype[Any] | None = None

    def to_numpy(self, dtype: np.dtype[Any] | None = None) -> np.generic:
        """Return the value with its declared dtype, or else with the entry point's `dtype`.

        A negative value for an unsigned `dtype` becomes signed, because PTX does not distinguish them. Raises
        ArgumentError if both dtypes are None, NumPy cannot convert the value to a single element, or an integer dtype
        cannot hold it.
        """
        target = self.dtype or dtype
        if target is None:
            raise ArgumentError(f"{self.name}: the entry point takes a struct; give scalar({self.name!r}, dtype=...)")
        try:
            if self.dtype is None and target.kind == "u" and self.value < 0:
                target = np.dtype(f"i{target.itemsize}")
            array = np.array(self.value, dtype=target)
            fits = self.value is not None and (target.kind not in "iu" or int(array) == self.value)
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits or array.shape:
            raise ArgumentError(
                f"{self.name}: {self.value!r} does not fit {target}; change the value or scalar's dtype="
            )
        value: np.generic = array[()]  # type: ignore[assignment]
        return value


class ParameterLayout(NamedTuple):
    """Size and alignment of an entry point's parameter in bytes, and its dtype; the dtype of a struct is None."""

    size: int
    alignment: int
    dtype: np.dtype[Any] | None


def pack_arguments(
    arguments: Sequence[ArrayArgument | ScalarArgument], layout: Sequence[ParameterLayout]
) -> tuple[bytes, tuple[int, ...]]:
    """Return the packed bytes of an entry point's parameters, with zeros for addresses, and the addresses' offsets.

    Raises UnknownArgumentError if the layout does not fit the arguments, and the exceptions of
    `ScalarArgument.to_numpy`.
    """
    if len(layout) != len(arguments):
        count = count_noun(len(layout), "argument")
        advice = "declare exactly these, and those of older commits in earlier="
        raise UnknownArgumentError(f"the entry point takes {count}, but the declaration has {len(arguments)}; {advice}")
    packed, address_offsets = bytearray(), []
    for argument, (size, alignment, dtype) in zip(arguments, layout, strict=True):
        packed += bytes(-len(packed) % alignment)
        if isinstance(argument, ArrayArgument):
            address_offsets.append(len(packed))
            value = bytes(8)
        else:
            value = argument.to_numpy(dtype).tobytes()
        if len(value) != size:
            advice = "declare a scalar" if isinstance(argument, ArrayArgument) else "change scalar's dtype="
            expected = f"the entry point takes {count_noun(size, 'byte')}"
            raise UnknownArgumentError(f"{argument.name}: {expected}, but the argument has {len(value)}; {advice}")
        packed += value
    return bytes(packed), tuple(address_offsets)


def insert_addresses(parameters: bytes, offsets: Sequence[int], addresses: Sequence[int]) -> bytes:
    """Return the packed bytes of `pack_arguments` with device addresses at `offsets`."""
    packed = bytearray(parameters)
    for offset, address in zip(offsets, addresses, strict=True):
        struct.pack_into("Q", packed, offset, address)
    return bytes(packed)


def to_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the NumPy dtype. Raises NoSuchDtypeError if it does not exist, has no bytes or holds Python objects."""
    numpy_dtype = _find_dtype(dtype)
    if numpy_dtype is None:
        # Names such as bfloat16 are registered. Other uses do not pay for it: ml_dtypes 0.7.0 takes 0.6 s.
        import ml_dtypes  # noqa: F401, PLC0415

        numpy_dtype = _find_dtype(dtype)
    if numpy_dtype is None:
        raise NoSuchDtypeError(f"dtype {dtype!r} is not a NumPy dtype; write one such as float32")
    if numpy_dtype.hasobject or not numpy_dtype.itemsize:
        problem = "holds Python objects" if numpy_dtype.hasobject else "has no bytes"
        raise NoSuchDtypeError(f"dtype {numpy_dtype} {problem}; use numbers, or a struct of numbers")
    return numpy_dtype


def _find_dtype(dtype: DTypeLike) -> np.dtype[Any] | None:
    try:
        return np.dtype("None" if dtype is None else dtype)  # NumPy reads None as float64
    except (TypeError, ValueError, SyntaxError):
        return None


def to_numbers(kernel: str, variable: str, value: object) -> Array:
    """Return the array that `constants=` gives for a variable. Raises ArgumentError if it has no numbers."""
    with suppress(ValueError):  # NumPy refuses nested lists of different lengths
        array = np.asarray(value)
        if array.dtype.kind in "biufcV":
            return array
    raise ArgumentError(f"{kernel}: constants= gives {variable} the value {value!r}; give an array of numbers")


def check_integer(kernel: str, name: str, value: object, minimum: int) -> int:
    """Return an argument as a Python integer. Raises ArgumentError unless it is from `minimum` to MAX_INT64."""
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < minimum:
        raise ArgumentError(f"{kernel}: {name} must be an integer of at least {minimum}; given: {value!r}")
    if number > MAX_INT64:
        raise ArgumentError(f"{kernel}: {name} must fit a signed 64-bit integer, at most {MAX_INT64}; given: {number}")
    return number
