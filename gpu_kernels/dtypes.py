"""The element types, by item size: the kernels only move data, so the size is all that matters to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from gpu_kernels.errors import UnknownDtypeError


@dataclass(frozen=True)
class ElementType:
    """One element type.

    Parameters
    ----------
    name : NumPy's name of the dtype that stands for this size.
    itemsize : bytes an element.
    cuda : the built-in CUDA C++ type that is moved. Built-in, so that no header has to be compiled: a float16
        travels as the 16-bit integer it is stored in.
    """

    name: str
    itemsize: int
    cuda: str


DTYPES: dict[str, ElementType] = {
    row.name: row
    for row in (
        ElementType("int8", 1, "signed char"),
        ElementType("float16", 2, "short"),
        ElementType("float32", 4, "float"),
        ElementType("float64", 8, "double"),
        ElementType("complex128", 16, "double2"),
    )
}

_BY_ITEMSIZE = {row.itemsize: row for row in DTYPES.values()}


def get(dtype: DTypeLike) -> ElementType:
    """Return the element type that moves `dtype`, by its item size: int16 travels as float16 does.

    Raises
    ------
    UnknownDtypeError : there is no such dtype, it holds Python objects, or no element type has its item size.
    """
    try:
        if dtype is None:  # NumPy takes it for float64
            raise TypeError
        given = np.dtype(dtype)
    except TypeError:
        raise UnknownDtypeError(
            f"dtype {dtype!r} is not a NumPy dtype; allowed are {_allowed()} and any other dtype of those item sizes"
        ) from None
    if given.hasobject or given.itemsize not in _BY_ITEMSIZE:
        raise UnknownDtypeError(
            f"dtype {given.name} has {given.itemsize} bytes an element; allowed are {_allowed()} and any other dtype "
            "of those item sizes that holds no Python objects"
        )
    return _BY_ITEMSIZE[given.itemsize]


def _allowed() -> str:
    return ", ".join(f"{row.name} ({row.itemsize})" for row in DTYPES.values())
