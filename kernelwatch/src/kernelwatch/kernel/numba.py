"""The arguments of a kernel that numba-cuda compiled: of each array it takes seven or more values instead of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwatch.kernel.arguments import ArrayArgument, ScalarArgument
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, declared


@dataclass(frozen=True, eq=False)
class _OfArray(ScalarParameter):
    """A number that describes an array."""

    array: ArrayParameter | None = None
    read: Callable[[ArrayArgument], int] = lambda array: 0

    def extents(self) -> list[str]:
        return []  # the array names them

    def of(self, extents: Mapping[str, Any]) -> ScalarArgument:
        assert self.array is not None
        array = self.array.of(extents["dtype"], extents)
        return ScalarArgument(self.name, self.read(array), np.dtype("int64"))


def numba_arguments(*arguments: Parameter | str) -> list[Parameter]:
    """Return what the PTX of numba-cuda takes for these arguments of a Python function.

    Of an array that is two addresses of Python's, which are 0, its elements, an element's bytes, the address, and then
    its lengths and its strides in bytes. Arrays are in C's order.

    Parameters
    ----------
    *arguments : Parameter or str
        As `Kernel` takes them, an array's shape as a text of lengths.
    """
    return [each for one in declared(arguments) for each in _taken(one)]


def _taken(one: Parameter) -> Iterator[Parameter]:
    if isinstance(one, ScalarParameter):
        yield one
        return
    for name in ("meminfo", "parent"):
        yield _OfArray(f"{one.name}.{name}", array=one)
    yield _OfArray(f"{one.name}.size", array=one, read=lambda array: int(np.prod(array.shape)))
    yield _OfArray(f"{one.name}.itemsize", array=one, read=lambda array: array.dtype.itemsize)
    yield one
    axes = range(len(str(one.shape).split()))
    for axis in axes:
        yield _OfArray(f"{one.name}.shape[{axis}]", array=one, read=lambda array, axis=axis: array.shape[axis])  # type: ignore[misc]
    for axis in axes:
        yield _OfArray(f"{one.name}.strides[{axis}]", array=one, read=lambda array, axis=axis: _stride(array, axis))  # type: ignore[misc]


def _stride(array: ArrayArgument, axis: int) -> int:
    return array.dtype.itemsize * int(np.prod(array.shape[axis + 1 :], dtype=np.int64))
