"""Kernels of tile languages: CuTe DSL, cuTile and tilelang."""

from __future__ import annotations

import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ptx.parser import parse_cached
from ..ptx.program import Variable
from ..util.errors import LaunchError
from ..util.grammar import count_noun
from .adapted_kernel import DIVISOR, SWIZZLES, AdaptedKernel, describe_shape, import_tool, is_aligned
from .declarations import find_declarations
from .kernel_sources import read_embedded_ptx
from .names import find_entry

if TYPE_CHECKING:
    from ..isa.hopper.tensor_maps import TensorMap

#: cuTile specializes kernels for lengths and strides of arrays with at most this many axes.
_SPECIALIZED_AXES = 5
#: Size of a pointer in bytes.
_POINTER = 8


class _MapCall(NamedTuple):
    """A call of ``cuTensorMapEncodeTiled`` by tilelang's host code: rank, name of the array, and all other numbers."""

    rank: int
    array: str
    numbers: list[int]


def adapt_cute(kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Adapt the result of ``cute.compile`` with ``options="--keep-ptx"``; arrays become CuTe tensors."""
    ptx = kernel.__ptx__
    if not ptx:
        raise LaunchError('this CuTe DSL function has no PTX; compile it with options="--keep-ptx"')
    name = find_entry(ptx, entry)
    kernel_entry = parse_cached(ptx).entries.get(name)
    parameters = kernel_entry.parameters if kernel_entry else []
    adapted = [
        _describe_tensor(argument, parameter) if isinstance(argument, np.ndarray) else argument
        for argument, parameter in zip(arguments, parameters, strict=False)
    ]
    return AdaptedKernel(ptx, name, [*adapted, *arguments[len(adapted) :]])


def _describe_tensor(array: Any, parameter: Variable) -> Any:
    """Describe an array as a CuTe tensor: a dict of the address, and of the dynamic lengths and strides.

    For a static layout, the parameter has 8 bytes and takes only the address. A stride of 1 is always static:
    ``mark_layout_dynamic`` excludes it. Raises `LaunchError` for a parameter of another size, and as `describe_shape`.
    """
    if parameter.size == _POINTER:
        return array
    lengths, strides = describe_shape(array)
    dynamic = [stride for stride in strides if stride != 1]
    tensor = {"data": array, "shape": lengths} | ({"strides": dynamic} if dynamic else {})
    size = -(-(_POINTER + 4 * len(lengths)) // 8) * 8 + 8 * len(dynamic)
    if size != parameter.size:
        raise LaunchError(
            f"the kernel's tensor has {parameter.size} bytes; an array of shape {array.shape} takes 8 with a static "
            f"layout, or {size} with a dynamic one; pass a dict of the tensor's members"
        )
    return tensor


def adapt_cutile(kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Compile a ``@ct.kernel`` for these arguments, and read the PTX from the cubin.

    Tensor maps may follow the arguments; else cuTile's host code makes them. Raises `LaunchError` for a wrong number.
    """
    tile, compilation = import_tool("cuda.tile", kernel), import_tool("cuda.tile.compilation", kernel)
    annotations = kernel._annotated_function.parameter_annotations
    if len(arguments) < len(annotations):
        count = count_noun(len(annotations), "argument")
        raise LaunchError(f"this kernel of cuTile takes {count}, not {len(arguments)}; pass constants, too")
    constraints, flat = _constrain_arguments(arguments, annotations, tile, compilation)
    conventions = compilation.CallingConvention
    has_constant_length = any(1 in argument.shape for argument in arguments if isinstance(argument, np.ndarray))
    convention = conventions.cutile_python_v2() if has_constant_length else conventions.cutile_python_v1()
    signature = compilation.KernelSignature(constraints, convention)
    cubin = io.BytesIO()
    compilation.export_kernel(kernel, [signature], cubin, gpu_code=arch, output_format="cubin")
    ptx = read_embedded_ptx(cubin.getvalue(), "cuTile's output")
    kernels = [kernel for name, kernel in parse_cached(ptx).entries.items() if entry in (None, name)]
    map_count = sum(parameter.hidden for kernel in kernels for parameter in kernel.parameters)
    given_maps = arguments[len(annotations) :]
    maps = given_maps
    if map_count and not given_maps:
        from .cutile_maps import make_tensor_maps  # noqa: PLC0415 -- which few kernels take

        maps = make_tensor_maps(cubin.getvalue(), flat, map_count)
    if map_count != len(maps):
        counts = f"{count_noun(len(annotations), 'argument')} and {count_noun(map_count, 'tensor map')}"
        taken = f"cuTile's kernel for {arch} takes {counts}"
        if given_maps:
            raise LaunchError(f"{taken}, not {len(arguments)} arguments")
        problem = f"{taken}, but its host function, which makes maps, did not run"
        remedy = 'pass each map after the arguments, as ptxcount.TensorMap(array, box, swizzle), or arch="sm_80"'
        raise LaunchError(f"{problem}; {remedy}")
    return AdaptedKernel(ptx, entry, [*flat, *maps])


def _constrain_arguments(
    arguments: Sequence[Any], annotations: Sequence[Any], tile: Any, compilation: Any
) -> tuple[list[Any], list[Any]]:
    """Return cuTile's constraint for each argument; and the PTX's arguments: arrays, lengths, strides, numbers."""
    constraints: list[Any] = []
    flat: list[Any] = []
    for argument, annotation in zip(arguments, annotations, strict=False):
        if getattr(annotation, "constant", False):
            constraints.append(compilation.ConstantConstraint(argument))
        elif isinstance(argument, np.ndarray):
            constraints.append(_constrain_array(argument, tile, compilation))
            lengths, strides = describe_shape(argument, "i4", "i4")
            flat += [argument, *lengths, *strides]
        else:
            scalar = np.asarray(argument, {int: "i4", float: "f4"}.get(type(argument)))[()]
            constraints.append(compilation.ScalarConstraint(_find_type(scalar.dtype, tile)))
            flat.append(scalar)
    return constraints, flat


def _constrain_array(array: Any, tile: Any, compilation: Any) -> Any:
    """Return cuTile 1.7's constraints for an array at its simulated address; the kernel's annotations are ignored."""
    lengths, strides = describe_shape(array)
    axis_constraints = {
        "shape_constant": [1 if length == 1 else None for length in lengths],
        "shape_divisible_by": [DIVISOR if length % DIVISOR == 0 else 1 for length in lengths],
        "stride_constant": [1 if stride == 1 else None for stride in strides],
        "stride_divisible_by": [DIVISOR // array.itemsize if size % DIVISOR == 0 else 1 for size in array.strides],
    }
    axes = sorted(zip(strides, lengths, strict=True))
    # For cuTile, elements are disjoint if each stride is at least the previous stride times its length.
    least_strides = [1, *(stride * length for stride, length in axes)]
    return compilation.ArrayConstraint(
        _find_type(array.dtype, tile),
        array.ndim,
        index_dtype=tile.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=any(stride < least for (stride, _), least in zip(axes, least_strides, strict=False)),
        base_addr_divisible_by=DIVISOR if is_aligned(array) else 1,
        **(axis_constraints if array.ndim <= _SPECIALIZED_AXES else {}),
    )


def _find_type(dtype: Any, tile: Any) -> Any:
    name = "bool_" if dtype.name == "bool" else dtype.name
    if not hasattr(tile, name):
        raise LaunchError(f"cuTile has no type for NumPy's {dtype.name}; pass arguments of another dtype")
    return getattr(tile, name)


def adapt_tilelang(kernel: Any, entry: str | None, arguments: Sequence[Any] | Mapping[str, Any]) -> AdaptedKernel:
    """Adapt the result of ``tilelang.lower``: CUDA C++, compiled with tilelang's headers.

    tilelang reorders a kernel's parameters, so ``arguments`` must be a mapping by name.
    """
    package = Path(import_tool("tilelang", kernel).__file__).parent
    folders = [package / "src", package / "3rdparty" / "cutlass" / "include"]
    flags = shlex.join(["-std=c++17", "--expt-relaxed-constexpr", *(f"-I{folder}" for folder in folders)])
    functions = {variable.name_hint: function for variable, function in kernel.device_mod.functions.items()}
    if entry is None and len(functions) > 1:
        raise LaunchError(f"tilelang generated {len(functions)} kernels; name one as entry: {', '.join(functions)}")
    name = entry or next(iter(functions))
    if name not in functions:
        raise LaunchError(f"tilelang generated no kernel {name}; name one as entry: {', '.join(functions)}")
    declarations = {declaration.name: declaration for declaration in find_declarations(kernel.kernel_source)}
    if name not in declarations:
        raise LaunchError(f"tilelang's source declares no kernel {name}; name one as entry: {', '.join(declarations)}")
    names = [parameter for _, parameter in declarations[name].parameters]
    ordered = _order_arguments(kernel, name, names, arguments)
    attributes = functions[name].attrs
    extents = attributes["thread_extent"]
    block = [int(extents[f"threadIdx.{axis}"]) for axis in "xyz" if f"threadIdx.{axis}" in extents]
    shared = int(attributes["dyn_shared_memory_buf"]) if "dyn_shared_memory_buf" in attributes else 0
    cluster = [*map(int, attributes["cluster_dims"])] if "cluster_dims" in attributes else None
    target = kernel.target.attrs if hasattr(kernel, "target") else {}
    arch = str(target["arch"]) if "arch" in target else None
    return AdaptedKernel(
        kernel.kernel_source, name, ordered, flags, arch, block=block, dynamic_shared=shared, names=names,
        cluster=cluster,
    )  # fmt: skip


def _order_arguments(kernel: Any, name: str, parameters: list[str], arguments: object) -> list[Any]:
    """Return the arguments in the order of the parameters; for a tensor map, make it from the array that it copies."""
    map_calls = {map_name: call for map_name, call in _find_map_calls(kernel).items() if map_name in parameters}
    wanted = [map_calls[parameter].array if parameter in map_calls else parameter for parameter in parameters]
    if not isinstance(arguments, Mapping) or {*arguments} != {*wanted}:
        names = ", ".join(dict.fromkeys(wanted))
        raise LaunchError(f"tilelang's kernel {name} takes a dict of arguments with these names: {names}")
    maps = {map_name: _make_map(arguments[call.array], call) for map_name, call in map_calls.items()}
    return [{**arguments, **maps}[parameter] for parameter in parameters]


def _find_map_calls(kernel: Any) -> dict[str, _MapCall]:
    """Return the calls that make tensor maps, by the map's name; only calls with constant numbers."""
    functions = kernel.host_mod.functions.values() if hasattr(kernel, "host_mod") else ()
    calls = (call for function in functions for call in function.attrs.get("tma_descriptor_args", {}).items())
    return {
        variable.name: _MapCall(words[3].value, words[4].name, [word.value for word in words[5:]])
        for variable, words in calls
        if words[0].value == "__tvm_tensormap_create_tiled" and all(hasattr(word, "value") for word in words[5:])
    }


def _make_map(array: Any, call: _MapCall) -> TensorMap:
    """Make a tensor map of an array from a call's numbers: lengths, strides, box and steps, x first, then options."""
    from ..isa.hopper.tensor_maps import TensorMap  # noqa: PLC0415 -- which few kernels take

    rank, name, numbers = call
    lengths, strides, box, steps = (tuple(numbers[first : first + rank][::-1]) for first in range(0, 4 * rank, rank))
    _, swizzle, _, fills_nan = numbers[4 * rank :]
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        problem = f"argument {name} is no C-contiguous array, but tilelang's kernel copies it by a tensor map"
        raise LaunchError(f"{problem}; pass a copy as an array")
    try:
        view = np.ndarray(lengths, array.dtype, array.reshape(-1).view(np.uint8), 0, strides)
    except (TypeError, ValueError):
        raise LaunchError(f"argument {name} has the shape {array.shape}; it must have {lengths}") from None
    return TensorMap(view, box, SWIZZLES[swizzle], steps, bool(fills_nan))
