"""The call of a kernel's reference function, which computes the expected outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import Array
from ptxcount.util.grammar import count_noun


def call_reference(
    kernel: str, reference: Callable[..., Any], arrays: Mapping[str, Array], extents: Mapping[str, Any],
    output_names: Sequence[str], *, as_float64: bool,
) -> list[Array]:  # fmt: skip
    """Return the output arrays of a kernel's reference function, in the order of `output_names`.

    With `as_float64`, the function gets arrays of floats as float64. Raises ArgumentError if the function has an
    unknown parameter without a default, fails, or returns a wrong number of arrays, a wrong shape or texts. A
    MemoryError is passed on.
    """
    if as_float64:
        arrays = {name: array.astype(np.float64) if _is_float(array.dtype) else array for name, array in arrays.items()}
    variables = {**extents, **arrays}
    if unknown := expressions.list_required(reference) - {*variables}:
        raise ArgumentError(
            f"{kernel}: its reference takes {', '.join(sorted(unknown))}; allowed are {', '.join(variables)}; "
            f"**a takes all of them, as in a[{next(iter(arrays))!r}]"
        )
    try:
        returned = expressions.call_with_known(reference, variables)
        outputs = [np.asarray(output) for output in (returned if isinstance(returned, tuple) else [returned])]
    except (ArgumentError, MemoryError):
        raise
    except Exception as error:  # a user's function may raise any error
        raise ArgumentError(f"{kernel}: its reference raises {type(error).__name__}: {error}") from error
    if len(outputs) != len(output_names):
        names = ", ".join(output_names)
        raise ArgumentError(
            f"{kernel}: its reference returns {count_noun(len(outputs), 'array')}, but the outputs are {names}"
        )
    for name, output in zip(output_names, outputs, strict=True):
        if output.shape != arrays[name].shape:
            shapes = f"the shape {output.shape}, not {arrays[name].shape}"
            raise ArgumentError(f"{kernel}: its reference returns {name} with {shapes}")
        if output.dtype.kind in "US" and arrays[name].dtype.kind != output.dtype.kind:
            raise ArgumentError(f"{kernel}: its reference returns {name} with texts; return numbers")
    return outputs


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
