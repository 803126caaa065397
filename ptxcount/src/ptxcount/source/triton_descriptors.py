"""Tensor descriptors that a host passes to a kernel of Triton: ``TensorDescriptor`` of ``triton.tools``.

From sm_90 on, a kernel takes a tensor map for each. For sm_80, it takes the array, its shape, its strides, and flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..util.errors import LaunchError
from .adapted_kernel import SWIZZLES, view_array

if TYPE_CHECKING:
    from ..isa.hopper.tensor_maps import TensorMap


def is_descriptor(argument: Any) -> bool:
    """Tell if an argument is a tensor descriptor."""
    return all(hasattr(argument, name) for name in ("base", "block_shape", "padding"))


def expand_descriptors(arguments: Sequence[Any], properties: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return arguments as Triton's launch passes them: a descriptor becomes a map, and its shape and strides.

    ``properties`` has the properties of each map; none for sm_80, where array, shape, strides and flags replace it.
    """
    remaining_properties = iter(properties)
    expanded: list[Any] = []
    for argument in arguments:
        if not is_descriptor(argument):
            expanded.append(argument)
            continue
        array = _view_elements(argument)
        strides = [*map(np.int64, argument.strides)]
        flags = [np.bool_(argument.padding == "nan"), np.bool_(getattr(argument, "round_f32_to_tf32", False))]
        if properties:
            expanded.append(_make_map(array, next(remaining_properties), flags))
        else:
            expanded += [array, *map(np.int64, argument.shape), *strides, *flags]
        expanded += [*map(np.int32, argument.shape), *strides]
    return expanded


def _view_elements(descriptor: Any) -> Any:
    """View a descriptor's elements; raise `LaunchError` unless the base is a contiguous array with these elements."""
    base = view_array(descriptor.base)
    if not isinstance(base, np.ndarray) or not base.flags.c_contiguous:
        raise LaunchError("the base of a tensor descriptor must be a contiguous array; pass a copy")
    strides = [stride * base.itemsize for stride in descriptor.strides]
    try:
        return np.ndarray(tuple(descriptor.shape), base.dtype, base.reshape(-1).view(np.uint8), 0, strides)
    except (TypeError, ValueError):
        raise LaunchError(
            f"a tensor descriptor with shape {[*descriptor.shape]} and strides {[*descriptor.strides]} exceeds its "
            f"array of {base.size} elements; pass a larger array"
        ) from None


def _make_map(array: Any, properties: Mapping[str, Any], flags: Sequence[Any]) -> TensorMap:
    """Make a tensor map of an array; ``flags`` tell if the map fills with NaN, and if it rounds to TF32."""
    from ..isa.hopper.tensor_maps import TensorMap  # noqa: PLC0415 -- which few kernels take

    fills_nan, rounds = map(bool, flags)
    unsupported = {
        "rounds to TF32": rounds,
        "pads packed FP4": properties["fp4_padded"],
        "is in im2col mode": properties.get("is_im2col"),
    }
    for mode, is_used in unsupported.items():
        if is_used:
            raise LaunchError(f"a tensor descriptor of Triton that {mode} is not supported; pass a kernel without one")
    return TensorMap(array, tuple(properties["block_size"]), SWIZZLES[properties["swizzle"]], fills_nan=fills_nan)
