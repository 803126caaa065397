"""A kernel's arguments from words such as ``input=float32[64,64]``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import host_memory
from .errors import LaunchError
from .execute import Argument

_ARRAY = re.compile(r"(?P<name>[\w:]+)=(?P<dtype>\w+)\[(?P<shape>\d+(?:,\d+)*)\](?:=(?P<fill>zeros|ones|arange))?")
_SCALAR = re.compile(r"(?:(?P<name>[\w:]+)=)?(?P<dtype>[a-z]+\d*):(?P<value>[-+.\w]+)")
#: By names such as float32 and f4. What NumPy calls float or int has another size than what CUDA calls so.
_DTYPES = {name: dtype for dtype in map(np.dtype, "?bhiqBHIQefdFD") for name in (dtype.name, dtype.str[1:])}
#: What is shown of a word in an error.
_SHOWN = 60


def arguments(words: Sequence[str]) -> list[Argument]:
    """A kernel's arguments from their descriptions, in the kernel's order. Raises as `argument`."""
    made: list[Argument] = []
    for word in words:
        made.append(argument(word, beside=sum(each.nbytes for each in made)))
    return made


def argument(word: str, beside: int = 0) -> Argument:
    """A kernel argument from its description.

    ``name=dtype[shape]`` is an array that holds 0, 1, 2, ..., or what ``=zeros`` or ``=ones`` behind it says.
    ``dtype:value`` is a scalar, which may have a name in front as well. Raises `LaunchError` if the word is neither,
    and `MemoryError` if it and the bytes that are there already, ``beside``, are more than this machine's memory.
    """
    array, scalar = _ARRAY.fullmatch(word), _SCALAR.fullmatch(word)
    shown = repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")
    if array is None and scalar is None:
        raise LaunchError(f"argument {shown}: neither an array, name=float32[64,64], nor a scalar, int32:7")
    name = (array or scalar)["dtype"]  # type: ignore[index]
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise LaunchError(f"argument {shown}: {name!r} is not a NumPy dtype of known size, such as float32")
    try:
        if array:
            return _filled(array["fill"] or "arange", [int(n) for n in array["shape"].split(",")], dtype, beside)
        return _number(scalar["value"], dtype)  # type: ignore[index]
    except (ValueError, OverflowError) as error:
        raise LaunchError(f"argument {shown}: not a {dtype.name}: {error}") from None


def _filled(fill: str, shape: list[int], dtype: np.dtype[Any], beside: int) -> Argument:
    host_memory.require(beside + math.prod(shape) * dtype.itemsize)
    if fill == "arange":
        return host_memory.counting(math.prod(shape), dtype).reshape(shape)
    return np.full(shape, int(fill == "ones"), dtype)


def _number(text: str, dtype: np.dtype[Any]) -> Argument:
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= int(text) <= np.iinfo(dtype).max:
        raise OverflowError(f"{text} is out of its range")
    with np.errstate(all="ignore"):
        value: np.generic = np.array([text]).astype(dtype)[0]
    return value
