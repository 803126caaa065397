"""Kernels of NVIDIA Warp (``@wp.kernel``)."""

import ctypes
import json
import math
import operator
import re
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..util.errors import LaunchError
from ..util.grammar import count_noun
from .adapted_kernel import AdaptedKernel, import_tool, parse_capability, view_array

#: Number of axes in a Warp array descriptor.
_AXES = 4
#: Default threads per block of a launch.
_BLOCK = 256
#: Bytes of a Warp array descriptor.
_DESCRIPTOR_BYTES = 56
#: Python's types that Warp takes for other types than NumPy does.
_SCALARS = {"int": "int32", "float": "float32"}
#: Names of NumPy's dtypes of numbers, which Warp has as well.
_NUMBERS = {dtype.name for dtype in map(np.dtype, "?bhiqBHIQefd")}


def adapt_warp(
    kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str, dim: Any, block: Any
) -> AdaptedKernel:
    """Compile the module of a Warp kernel, and adapt its forward kernel.

    ``dim`` is as in ``wp.launch``, and determines the grid. ``block`` is the block size; None for 256 threads.
    """
    if kernel.is_generic:
        raise LaunchError(f"the Warp kernel {kernel.key} is generic; pass one of its overloads, with types")
    if entry not in (None, kernel.key):
        raise LaunchError(f"entry is {entry!r}, but this is the Warp kernel {kernel.key}; omit entry")
    try:
        lengths = [operator.index(length) for length in (dim if isinstance(dim, Sequence) else [dim])]
    except TypeError:
        raise LaunchError(f"grid is {dim!r}; for the Warp kernel {kernel.key}, give one or more integers") from None
    threads = _BLOCK if block is None else block
    size = int(np.prod(threads))
    ptx, metadata = _compile_module(kernel.module, parse_capability(arch), size, kernel.module.get_module_hash(size))
    pattern = rf"\.entry\s+({re.escape(kernel.get_mangled_name())}\w*_forward)\b"
    match = re.search(pattern, ptx)
    if match is None:
        raise LaunchError(f"this release of Warp is not supported: its PTX has no kernel {kernel.key}; use Warp 1.19")
    parameters = kernel.adj.args
    if len(arguments) != len(parameters):
        labels = ", ".join(parameter.label for parameter in parameters)
        count = count_noun(len(parameters), "argument")
        raise LaunchError(f"the Warp kernel {kernel.key} takes {count} ({labels}), not {len(arguments)}")
    axes = kernel.adj.kernel_dim
    bounds = {
        "shape": [np.uint32(n) for n in (*lengths[:axes], *[1] * (axes - len(lengths)))],
        "size": np.uint64(math.prod(lengths)),
        "coord_mult": np.uint64(math.prod(lengths[axes:])),  # threads of a tile share their coordinates
    }
    adapted = [
        _adapt_argument(parameter.label, value, parameter.type)
        for value, parameter in zip(arguments, parameters, strict=True)
    ]
    blocks = -(-math.prod(lengths) // size)
    names = ["the launch's bounds", *(f"argument {parameter.label}" for parameter in parameters)]
    shared = metadata.get(f"{match[1]}_smem_bytes", 0)
    return AdaptedKernel(
        ptx, match[1], [bounds, *adapted], grid=blocks, block=threads, dynamic_shared=shared, names=names
    )


@lru_cache(maxsize=16)
def _compile_module(module: Any, capability: tuple[int, int], block: int, module_hash: bytes) -> tuple[str, Any]:
    """Compile a module for a block size, as a launch does; return the PTX and the metadata of the kernels.

    Kernels with tiles depend on the block size. The metadata has the kernels' dynamic shared memory in bytes.
    ``module_hash`` is only a key for `lru_cache`: it changes with the module's source.
    """
    default_block = module.options["block_dim"]
    module.options["block_dim"] = block
    try:
        with tempfile.TemporaryDirectory(prefix="ptxcount-") as folder:
            (path,) = import_tool("warp", module).compile_aot_module(
                module, device=None, arch=10 * capability[0] + capability[1], module_dir=folder, use_ptx=True
            )
            (metadata,) = (json.loads(file.read_text(encoding="utf-8")) for file in Path(folder).glob("*.meta"))
            return Path(path).read_text(encoding="utf-8").rstrip("\0"), metadata
    finally:
        module.options["block_dim"] = default_block


def _adapt_argument(label: str, value: Any, kind: Any) -> Any:
    """Return a value as the kernel takes it; convert numbers to the annotated type ``kind``, and None to no array.

    Values of other types stay as they are.
    """
    if getattr(value, "_cls", None) is kind:
        return _adapt_struct(value)
    if value is None and hasattr(kind, "ndim"):
        return np.void(bytes(_DESCRIPTOR_BYTES))
    if isinstance(value, np.ndarray) and hasattr(kind, "ndim"):
        _check_array(label, value, getattr(kind, "dtype", None), kind.ndim)
        unused = [np.int32(0)] * (_AXES - kind.ndim)
        return {
            "data": value,
            "grad": None,
            "shape": [*map(np.int32, value.shape[: kind.ndim]), *unused],
            "strides": [*map(np.int32, value.strides[: kind.ndim]), *unused],
            "ndim": np.int32(kind.ndim),
        }
    if isinstance(value, int | float | np.integer | np.floating | np.bool_) and isinstance(kind, type):
        dtype = np.dtype(_find_dtype_name(kind))
        if dtype.kind in "iu" and not (value % 1 == 0 and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
            raise LaunchError(f"argument {label} is {value}; it must be a whole number that {dtype} can hold")
        return dtype.type(value)
    if isinstance(value, np.ndarray):
        _check_array(label, value, kind, 0)
    is_vector = isinstance(value, np.ndarray | ctypes.Array)
    return np.void(bytes(np.ascontiguousarray(value))) if is_vector else value


def _find_dtype_name(kind: Any) -> str:
    """Return the name of the NumPy dtype of a scalar, or of the elements of a vector or matrix; else any name."""
    name = getattr(getattr(kind, "_wp_scalar_type_", kind), "__name__", "")
    return _SCALARS.get(name, name)


def _check_array(label: str, array: Any, element: Any, dimensions: int) -> None:
    """Raise `LaunchError` for an array of another type than ``element``, a type of Warp, or of other dimensions.

    A vector or matrix as an element has dimensions of its own. Structs are not checked.
    """
    name, dimensions = _find_dtype_name(element), dimensions + len(getattr(element, "_shape_", ()))
    if name in _NUMBERS and (array.dtype != name or array.ndim != dimensions):
        given = f"argument {label} is an array of {array.dtype} and shape {array.shape}"
        raise LaunchError(f"{given}; it must have {name} and {count_noun(dimensions, 'dimension')}")


def _adapt_struct(value: Any) -> dict[str, Any]:
    """Return the members of a ``@wp.struct`` instance by name, in the form that the kernel takes."""
    members = np.frombuffer(value.__ctype__(), type(value.__ctype__()))[0]
    adapted = {}
    for label, variable in value._cls.vars.items():
        member, attribute = members[label], view_array(getattr(value, label))
        if isinstance(attribute, np.ndarray) or hasattr(attribute, "_cls"):
            member = _adapt_argument(label, attribute, variable.type)
        adapted[label] = [*member.flat] if isinstance(member, np.ndarray) else member
    return adapted
