"""Kernels of Triton: a ``@triton.jit`` or ``@gluon.jit`` function, the result of ``triton.compile``, or only its PTX.

A host may pass a tensor descriptor, ``TensorDescriptor`` of ``triton.tools``. From sm_90 on, a kernel takes a
tensor map for it. For sm_80, it takes the array, its shape, its strides, and flags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..machine.argument_layout import KernelArgument
from ..ptx.parser import parse_cached
from ..util.errors import LaunchError
from ..util.grammar import count_noun
from .adapted_kernel import DIVISOR, SWIZZLES, AdaptedKernel, import_tool, is_aligned, parse_capability, view_array

if TYPE_CHECKING:
    from ..isa.hopper.tensor_maps import TensorMap

#: Dtypes -> Triton's type names, where these are not a letter and the number of bits.
_TYPES = {
    "bool": "u1", "bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv", "float8_e4m3b11fnuz": "fp8e4b15",
    "float8_e5m2": "fp8e5",
}  # fmt: skip
#: Triton's type of a value that is compiled into the kernel.
_CONSTANT = "constexpr"
#: Declaration of a parameter that Triton appends: a pointer to global scratch memory, or to profiling memory.
_SCRATCH = re.compile(r"\.param\s+\.u64\s+\.ptr\s+\.global\s+\.align\s+1\s+\w+")


def adapt_compiled_triton(kernel: Any, entry: str | None, arguments: Sequence[Any], arch: str) -> AdaptedKernel:
    """Adapt the result of ``triton.compile``, with the scratch memory that its blocks request."""
    metadata, ptx = kernel.metadata, kernel.asm["ptx"]
    name = entry or metadata.name
    arguments = _expand_descriptors(arguments, getattr(metadata, "tensordesc_meta", None) or [])
    kernel_entry = parse_cached(ptx).entries.get(name)
    missing = 0 if kernel_entry is None else len(kernel_entry.parameters) - len(arguments)
    sizes = [getattr(metadata, f"{memory}_scratch_size", 0) for memory in ("global", "profile")]
    return AdaptedKernel(
        ptx, name, list(arguments), program_blocks=getattr(metadata, "num_ctas", 1), block=metadata.num_warps * 32,
        dynamic_shared=metadata.shared, scratch_sizes=sizes[:missing] if 0 < missing <= len(sizes) else (),
    )  # fmt: skip


def add_scratch_pointers(ptx: str, entry: str, arguments: Sequence[KernelArgument]) -> list[KernelArgument]:
    """Append null pointers for Triton's one or two scratch pointers, if these are the only parameters without argument.

    nvcc declares no such parameter: the PTX is from Triton or a related tool.
    """
    parameters = re.search(rf"\.entry\s+{re.escape(entry)}\s*\(([^)]*)\)", ptx)
    declarations = parameters[1].split(",") if parameters else []
    missing = declarations[len(arguments) :]
    if 0 < len(missing) <= 2 and all(_SCRATCH.fullmatch(declaration.strip()) for declaration in missing):
        return [*arguments, *[None] * len(missing)]
    return list(arguments)


def adapt_jit_function(
    kernel: Any, entry: str | None, arguments: Sequence[Any] | Mapping[str, Any], arch: str, block: Any
) -> AdaptedKernel:
    """Compile a ``@triton.jit`` or ``@gluon.jit`` function for ``arch``, as a launch with these arguments does.

    Arguments are in the function's order, or a mapping by name, which may have options such as ``num_warps``. Without
    that option, ``block``, if not None, determines the number of warps.
    """
    keywords = _name_arguments(kernel, arguments)
    while not hasattr(kernel, "params"):  # unwrap @triton.autotune and @triton.heuristics
        if hasattr(kernel, "values") and isinstance(kernel.values, Mapping):
            keywords |= {name: choose(keywords) for name, choose in kernel.values.items()}
        kernel = kernel.fn
    values, options = _bind_values(kernel, keywords)
    if block is not None:
        options.setdefault("num_warps", int(np.prod(block)) // 32)
    types = [_choose_type(values[parameter.name], parameter) for parameter in kernel.params]
    source = _make_source(kernel, values, types)
    major, minor = parse_capability(arch)
    target = import_tool("triton.backends.compiler", kernel).GPUTarget("cuda", 10 * major + minor, 32)
    compiled = import_tool("triton", kernel).compile(source, target=target, options=options)
    passed = [
        _convert_number(values[parameter.name], kind)
        for parameter, kind in zip(kernel.params, types, strict=True)
        if kind != _CONSTANT
    ]
    return adapt_compiled_triton(compiled, entry, passed, arch)


def _make_source(kernel: Any, values: Mapping[str, Any], types: Sequence[str]) -> Any:
    """Make the input of Triton's compiler: constants and attributes are by the path to a parameter."""
    make_source = import_tool("triton.compiler", kernel).ASTSource
    if hasattr(kernel, "is_gluon") and kernel.is_gluon():
        make_source = import_tool("triton.experimental.gluon._runtime", kernel).GluonASTSource
    constants, attributes = {}, {}
    for place, (parameter, kind) in enumerate(zip(kernel.params, types, strict=True)):
        if kind == _CONSTANT:
            constants[(place,)] = values[parameter.name]
        elif _is_divisible(values[parameter.name], parameter):
            attributes[(place,)] = [["tt.divisibility", DIVISOR]]
    signature = dict(zip((parameter.name for parameter in kernel.params), types, strict=True))
    return make_source(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)


def _name_arguments(kernel: Any, arguments: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if len(arguments) > len(kernel.arg_names):
        names = ", ".join(kernel.arg_names)
        count = count_noun(len(kernel.arg_names), "argument")
        raise LaunchError(f"Triton's kernel takes {count} ({names}), not {len(arguments)}")
    return dict(zip(kernel.arg_names, arguments, strict=False))


def _bind_values(kernel: Any, keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values by parameter, and the options of the launch: the keywords that name no parameter."""
    names = [parameter.name for parameter in kernel.params]
    values = {parameter.name: parameter.default for parameter in kernel.params if parameter.has_default}
    values |= keywords
    if missing := [name for name in names if name not in values]:
        remedy = "pass all arguments, also those that @triton.autotune would choose, in the kernel's order"
        raise LaunchError(f"Triton's kernel also needs {', '.join(missing)}; {remedy}, or as a dict by name")
    options = {name: value for name, value in values.items() if name not in names}
    return {name: values[name] for name in names}, options


def _choose_type(value: Any, parameter: Any) -> str:
    """Return the type that Triton's launch gives to a value: that of the annotation, if any, else of the value.

    A value of the type `_CONSTANT` is compiled into the kernel.
    """
    is_one = _is_integer(value) and value == 1 and not parameter.do_not_specialize
    if parameter.is_constexpr or value is None or is_one:
        return _CONSTANT
    kind, annotation = _find_type(value, parameter), parameter.annotation_type
    return annotation if annotation and isinstance(annotation, str) else kind


def _find_type(value: Any, parameter: Any) -> str:
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return "i32"
        return "i64" if value < 1 << 63 else "u64"
    if isinstance(value, float):
        return "fp32"
    if _is_descriptor(value):
        layout = f",{value.layout!r}" if hasattr(value, "layout") else ""  # of Gluon
        return f"tensordesc<{_name_type(view_array(value.base).dtype)}{[*value.block_shape]}{layout}>"
    if not isinstance(value, np.ndarray | np.generic):
        problem = f"argument {parameter.name} of Triton's kernel has the type {type(value).__name__}"
        raise LaunchError(f"{problem}; pass an array, a number, a tensor descriptor or None")
    kind = _name_type(value.dtype)
    return ("*i1" if kind == "u1" else f"*{kind}") if isinstance(value, np.ndarray) else kind


def _name_type(dtype: Any) -> str:
    """Return Triton's name of a NumPy dtype: float32 -> "fp32", uint8 -> "u8"."""
    letter = {"f": "fp", "i": "i", "u": "u"}.get(dtype.kind, "")
    return _TYPES.get(dtype.name, f"{letter}{8 * dtype.itemsize}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _convert_number(value: Any, kind: str) -> Any:
    """Convert a Python number to a NumPy scalar of Triton's type ``kind``, such as "i32"; keep other values."""
    if isinstance(value, np.generic | np.ndarray) or _is_descriptor(value):
        return value
    dtypes = {"u1": "i1", "i1": "i1", "fp16": "f2", "fp32": "f4", "fp64": "f8"}  # one bit becomes one byte
    return np.dtype(dtypes.get(kind) or f"{kind[0]}{int(kind[1:]) // 8}").type(value)


def _is_divisible(value: Any, parameter: Any) -> bool:
    """Tell if Triton's launch would specialize the kernel for this value as a multiple of 16."""
    if parameter.do_not_specialize or parameter.do_not_specialize_on_alignment or _is_descriptor(value):
        return False
    if not isinstance(value, np.ndarray):
        return _is_integer(value) and int(value) % DIVISOR == 0
    return is_aligned(value)


def _is_descriptor(argument: Any) -> bool:
    """Tell if an argument is a tensor descriptor."""
    return all(hasattr(argument, name) for name in ("base", "block_shape", "padding"))


def _expand_descriptors(arguments: Sequence[Any], properties: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return arguments as Triton's launch passes them: a descriptor becomes a map, and its shape and strides.

    ``properties`` has the properties of each map; none for sm_80, where array, shape, strides and flags replace it.
    """
    remaining_properties = iter(properties)
    expanded: list[Any] = []
    for argument in arguments:
        if not _is_descriptor(argument):
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
        raise LaunchError("the base of a tensor descriptor is no C-contiguous array; pass a copy")
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
