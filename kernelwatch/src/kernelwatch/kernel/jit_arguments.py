"""The parameters of kernels compiled by Numba and Triton. Their PTX has more parameters than the Python functions."""

import math
from collections.abc import Callable, Iterator
from functools import partial

from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, to_parameters


def numba_arguments(*arguments: Parameter | str) -> list[Parameter]:
    """Return the parameters of numba-cuda's PTX for the arguments of a Python function.

    An array, in C order, becomes several parameters: two addresses of Python objects (0 here), the number of elements,
    the bytes of an element, the address of the data, the length of each axis, and the stride of each axis in bytes.

    Parameters
    ----------
    *arguments : Parameter or str
        As in `Kernel`; the shape of an array is a string.
    """
    return [expanded for parameter in to_parameters(arguments) for expanded in _expand_parameter(parameter)]


def triton_arguments(*arguments: Parameter | str) -> list[Parameter]:
    """Return the parameters of Triton's PTX: the arguments of a Python function, and two null pointers.

    Triton passes scratch memory through these pointers.

    Parameters
    ----------
    *arguments : Parameter or str
        As in `Kernel`, without arguments of type ``tl.constexpr``.
    """
    scratch = [ScalarParameter(name, "int64", 0) for name in ("scratch", "profile")]
    return [*to_parameters(arguments), *scratch]


def _expand_parameter(parameter: Parameter) -> Iterator[Parameter]:
    if isinstance(parameter, ScalarParameter):
        yield parameter
        return
    axes = range(len(str(parameter.shape).split()))
    yield _descriptor_field(parameter, "meminfo", lambda array: 0)
    yield _descriptor_field(parameter, "parent", lambda array: 0)
    yield _descriptor_field(parameter, "size", lambda array: math.prod(array.shape))
    yield _descriptor_field(parameter, "itemsize", lambda array: array.dtype.itemsize)
    yield parameter
    for axis in axes:
        yield _descriptor_field(parameter, f"shape[{axis}]", partial(_axis_length, axis=axis))
    for axis in axes:
        yield _descriptor_field(parameter, f"strides[{axis}]", partial(_axis_stride, axis=axis))


def _axis_length(array: ArrayArgument, axis: int) -> int:
    return array.shape[axis]


def _axis_stride(array: ArrayArgument, axis: int) -> int:
    return array.dtype.itemsize * math.prod(array.shape[axis + 1 :])


def _descriptor_field(array: ArrayParameter, name: str, describe: Callable[[ArrayArgument], int]) -> ScalarParameter:
    """Return a scalar parameter whose value `describe` computes from the array of a launch."""
    return ScalarParameter(
        f"{array.name}.{name}", "int64", lambda **variables: describe(array.bind(variables["dtype"], variables))
    )
