"""C++ types of a kernel's parameters: their NumPy dtypes, and a check of the arguments against them."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..machine.argument_layout import POINTER, ArrayDescriptor, KernelArgument
from ..util.errors import LaunchError
from .declarations import Declaration, find_declarations, find_structs
from .kernel_sources import is_ptx
from .names import parameter_types, source_name

#: C++ types -> NumPy dtypes. NumPy has no bfloat16: its bits are uint16, and dtypes of other packages fit, too.
TYPES = {
    "float": "float32", "double": "float64", "size_t": "uint64", "bool": "bool", "__half": "float16", "half": "float16",
    "unsigned": "uint32", "signed char": "int8", "uint": "uint32", "uchar": "uint8", "ushort": "uint16",
    "__nv_bfloat16": "uint16", "nv_bfloat16": "uint16",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"{long}{name}": f"{short}int{bits}" for long, short in (("", ""), ("unsigned ", "u"))
       for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long", 64), ("long long", 64))},
}  # fmt: skip
#: Vector types, such as ``float4``; of half and bfloat16, only pairs.
VECTORS = re.compile(r"(float|double|int|uint|short|ushort|char|uchar|(?:__)?(?:half|nv_bfloat16)(?=2))([234])")
#: Size of an address in bytes.
_ADDRESS = 8
#: NumPy kinds by content: signedness is ignored, and complex numbers are pairs of floats.
_NUMBER_KINDS = {"i": "whole", "u": "whole", "b": "whole", "f": "float", "c": "float"}


def strip_qualifiers(kind: str) -> str:
    """Return a type without ``const``, ``volatile``, ``restrict`` and ``struct``."""
    return " ".join(re.sub(r"\b(const|volatile|__restrict__|__restrict|restrict|struct)\b", " ", kind).split())


def find_base(kind: str) -> str:
    """Return a type without qualifiers, pointers and brackets: "const float*" -> "float"."""
    return strip_qualifiers(kind).rstrip("* []").strip()


def split_type(kind: str) -> tuple[str, int]:
    """Return the NumPy dtype of a type, else its name; and its number of pointers: "const float*" -> ("float32", 1)."""
    base = find_base(kind)
    return TYPES.get(base, base), kind.count("*") + kind.count("[")


def check_arguments(
    arguments: Sequence[KernelArgument], words: Sequence[str], entry: str, files: Sequence[Path]
) -> None:
    """Raise `LaunchError` if an argument does not fit the parameter's C++ type, or has another parameter's name.

    Other names are only labels. ``words`` are the texts of the arguments. Types come from the mangled name ``entry``,
    else from the declarations in the files, if all have the same. Unknown types accept anything; pointers to bytes or
    unknown types accept any array. With a wrong number of arguments, types are not checked.
    """
    declared = [declaration.parameters for declaration in find_declared(entry, files)]
    _check_order(words, [[name for _, name in parameters] for parameters in declared])
    declared_types = [[kind for kind, _ in parameters] for parameters in declared]
    is_clear = all(types == declared_types[0] for types in declared_types)
    types = parameter_types(entry) or (declared_types[0] if declared and is_clear else [])
    if len(types) == len(arguments):  # Numba passes an array as several parameters
        for word, argument, kind in zip(words, arguments, types, strict=True):
            _check_argument(word, argument, kind, files)


def _check_argument(word: str, argument: KernelArgument, kind: str, files: Sequence[Path]) -> None:
    """Raise `LaunchError` if an argument does not fit the C++ type ``kind``. A struct is looked up in ``files``."""
    base = find_base(kind)
    vector = VECTORS.fullmatch(base)
    dtype = TYPES.get(vector[1] if vector else base)
    # The text of a value: "float32:7", or of a float2 {"x": "float32:7", "y": "float32:7"}.
    example = json.dumps(dict.fromkeys("xyzw"[: int(vector[2])], f"{dtype}:7")) if vector else f"{dtype}:7"
    is_pointer = kind.count("*") + kind.count("[") == 1
    label = word.partition("=")[0] if "=" in word else "x"  # "x" stands for any name
    if isinstance(argument, Mapping) and not is_pointer and argument.keys() != {POINTER}:
        _check_members(label, list(argument), base, files)
    if isinstance(argument, ArrayDescriptor) and is_pointer:
        kind_text = f"a {type(argument).__name__}"
        raise LaunchError(f"argument {word[:60]} is {kind_text}, but the kernel takes {kind}; pass an array")
    if not isinstance(argument, np.ndarray | np.generic):
        return
    is_array, is_scalar_type = isinstance(argument, np.ndarray), base == strip_qualifiers(kind)
    description, needed = str(argument.dtype), ""
    if is_pointer and not is_array:
        if argument.nbytes != _ADDRESS:  # a scalar of this size may be an address
            needed = f"{label}={dtype or 'float32'}[N]"
    elif dtype and is_scalar_type and is_array:
        description, needed = "an array", f"{label}={example}"
        if base == "unsigned long long":  # also the type of handles
            needed += f", or for a texture, {label}=texture:{argument.dtype}[...]"
    elif dtype and is_array == is_pointer and not _fits_type(argument.dtype, dtype, is_pointer):
        needed = dtype if is_pointer or not vector else f"{label}={example}"
    if needed:
        raise LaunchError(f"argument {word[:60]} is {description}, but the kernel takes {kind}; pass {needed}")


def _fits_type(dtype: np.dtype[Any], name: str, is_pointer: bool) -> bool:
    """Tell if a dtype has the kind (`_NUMBER_KINDS`) of the named one, and behind a pointer its size.

    Raw bytes always fit, and a pointer to one-byte elements takes all arrays.
    """
    needed, size = np.dtype(name), dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if dtype.kind == "V" or (is_pointer and needed.itemsize == 1):
        return True
    is_same_kind = _NUMBER_KINDS.get(dtype.kind) == _NUMBER_KINDS[needed.kind]
    return is_same_kind and (not is_pointer or size == needed.itemsize)


def _check_members(label: str, keys: list[str], struct: str, files: Sequence[Path]) -> None:
    """Raise `LaunchError` unless the members are in the order of the struct in the first file that defines it."""
    name = struct.rpartition("::")[2]
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        members = find_structs(text).get(name) if name in text else None
        if members:
            names = [member.name for member in members]
            if names != keys:
                needed = f"struct {struct} has {', '.join(names)} in this order"
                raise LaunchError(f"{label} has the members {', '.join(keys)}; {needed}")
            return


def _check_order(words: Sequence[str], orders: Sequence[Sequence[str]]) -> None:
    """Raise `LaunchError` if, in each of the possible parameter lists, an argument has another parameter's name."""
    labels = [word.partition("=")[0] if "=" in word else "" for word in words]

    def is_misplaced(order: Sequence[str]) -> bool:
        return any(label and label != name and label in order for label, name in zip(labels, order, strict=False))

    if orders and all(map(is_misplaced, orders)):
        problem = f"the arguments are named {', '.join(label or '-' for label in labels)}"
        raise LaunchError(f"{problem}; the kernel's order is {', '.join(orders[0])}; reorder or rename them")


def find_declared(entry: str, files: Sequence[Path]) -> list[Declaration]:
    """Return the declarations (overloads, ``#if``) of a kernel in the first file that has any; none for PTX."""
    if not files or is_ptx(files[0]):
        return []
    name = source_name(entry)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        declared = find_declarations(text) if "__global__" in text and name.rpartition("::")[2] in text else []
        if matches := [declaration for declaration in declared if declaration.name == name]:
            return matches
    return []
