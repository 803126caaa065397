"""The element types."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes  # noqa: F401 -- teaches NumPy the name "bfloat16"
import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownDtypeError


@dataclass(frozen=True)
class ElementType:
    """One element type.

    Parameters
    ----------
    name : str
        NumPy's name of the dtype.
    itemsize : int
        Bytes an element.
    cuda : str
        The CUDA C++ type that kernels compute with.
    moved : str
        The built-in CUDA C++ type of the same size that is moved where nothing is computed: it needs no header. Empty
        if `cuda` is built in itself.
    header : str
        CUDA's header that declares `cuda`; empty if it is built in.
    """

    name: str
    itemsize: int
    cuda: str
    moved: str = ""
    header: str = ""

    def options(self, *, computes: bool) -> tuple[str, ...]:
        """Return nvcc's options that make the macro ELEMENT this type, for kernels that compute or merely move."""
        if computes and self.header:
            return "-include", self.header, f"-DELEMENT={self.cuda}"
        return (f"-DELEMENT={self.cuda if computes else self.moved or self.cuda}",)


#: To add a dtype: one row. The first row of an item size stands for all other dtypes of that size, which can be moved.
DTYPES: dict[str, ElementType] = {
    row.name: row
    for row in (
        ElementType("int8", 1, "signed char"),
        ElementType("float16", 2, "__half", moved="short", header="cuda_fp16.h"),
        ElementType("float32", 4, "float"),
        ElementType("float64", 8, "double"),
        ElementType("complex128", 16, "cuda::std::complex<double>", moved="double2", header="cuda/std/complex"),
        ElementType("bfloat16", 2, "__nv_bfloat16", moved="short", header="cuda_bf16.h"),
    )
}

#: Dtypes that kernels may be made for -> their C++ types.
CPP = {row.name: row.cuda for row in DTYPES.values()} | {
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "complex64": "cuda::std::complex<float>",
}

_FIRST_OF_SIZE: dict[int, ElementType] = {}
for _row in DTYPES.values():
    _FIRST_OF_SIZE.setdefault(_row.itemsize, _row)

#: One dtype of each item size. Kernels that move data are measured with these only.
ONE_OF_EACH_SIZE = tuple(row.name for row in _FIRST_OF_SIZE.values())


def get(dtype: DTypeLike) -> ElementType:
    """Return the row of `dtype` by its name; if there is none, the row that moves dtypes of its item size.

    Raises
    ------
    UnknownDtypeError
        There is no such dtype, it holds Python objects, or no element type has its item size.
    """
    try:
        if dtype is None:  # NumPy takes it for float64
            raise TypeError
        given = np.dtype(dtype)
    except TypeError:
        raise UnknownDtypeError(
            f"dtype {dtype!r} is not a NumPy dtype; allowed are {_allowed()} and any other dtype of those item sizes"
        ) from None
    found = DTYPES.get(given.name) or _FIRST_OF_SIZE.get(given.itemsize)
    if given.hasobject or found is None:
        raise UnknownDtypeError(
            f"dtype {given.name} has {given.itemsize} bytes an element; allowed are {_allowed()} and any other dtype "
            "of those item sizes that holds no Python objects"
        )
    return found


def _allowed() -> str:
    return ", ".join(f"{row.name} ({row.itemsize})" for row in DTYPES.values())
