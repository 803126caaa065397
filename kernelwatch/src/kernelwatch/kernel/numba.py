"""The arguments of a kernel that numba-cuda compiled: of each array it takes seven or more values instead of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, declared


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
    axes = range(len(str(one.shape).split()))
    yield _number(one, "meminfo", lambda array: 0)
    yield _number(one, "parent", lambda array: 0)
    yield _number(one, "size", lambda array: math.prod(array.shape))
    yield _number(one, "itemsize", lambda array: array.dtype.itemsize)
    yield one
    for axis in axes:
        yield _number(one, f"shape[{axis}]", partial(_length, axis=axis))
    for axis in axes:
        yield _number(one, f"strides[{axis}]", partial(_stride, axis=axis))


def _length(array: ArrayArgument, axis: int) -> int:
    return array.shape[axis]


def _stride(array: ArrayArgument, axis: int) -> int:
    return array.dtype.itemsize * math.prod(array.shape[axis + 1 :])


def _number(one: ArrayParameter, name: str, read: Callable[[ArrayArgument], int]) -> ScalarParameter:
    """Return a number that describes an array, which names the extents."""
    return ScalarParameter(f"{one.name}.{name}", "int64", lambda **known: read(one.of(known["dtype"], known)))
