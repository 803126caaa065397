"""The parameters of kernels compiled by Numba and Triton. Their PTX has more parameters than the Python functions."""

import math
from collections.abc import Iterator

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.arguments import ArrayArgument
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, to_parameters


def numba_arguments(*arguments: Parameter | str) -> list[Parameter]:
    """Return the parameters of numba-cuda's PTX for the arguments of a Python function.

    An array, in C order, becomes several parameters: two addresses of Python objects (0 here), the number of elements,
    the bytes of an element, the address of the data, the length of each axis, and the stride of each axis in bytes.

    Parameters
    ----------
    *arguments : Parameter or str
        As in `Kernel`.

    Raises
    ------
    ArgumentError
        The shape of an array is a function, from which the number of axes cannot be known.
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
    if not isinstance(parameter.shape, str):
        needed = 'numba_arguments needs the shape as a string, such as "h w"'
        raise ArgumentError(f"{parameter.name}: {needed}; given: {parameter.shape!r}")
    axes = range(len(parameter.shape.split()))
    yield from (_descriptor_field(parameter, name) for name in ("meminfo", "parent", "size", "itemsize"))
    yield parameter
    yield from (_descriptor_field(parameter, f"{name}[{axis}]") for name in ("shape", "strides") for axis in axes)


def _descriptor_field(array: ArrayParameter, name: str) -> ScalarParameter:
    """Return a scalar parameter with the value of `_describe_array` for the array of a launch."""
    return ScalarParameter(
        f"{array.name}.{name}",
        "int64",
        lambda **variables: _describe_array(array.bind(variables["dtype"], variables))[name],
    )


def _describe_array(array: ArrayArgument) -> dict[str, int]:
    itemsize, axes = array.dtype.itemsize, range(len(array.shape))
    return {
        "meminfo": 0,
        "parent": 0,
        "size": math.prod(array.shape),
        "itemsize": itemsize,
        **{f"shape[{axis}]": array.shape[axis] for axis in axes},
        **{f"strides[{axis}]": itemsize * math.prod(array.shape[axis + 1 :]) for axis in axes},
    }
