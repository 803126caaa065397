"""C++ types of a kernel's parameters: their NumPy dtypes, and a check of the arguments against them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..machine.argument_layout import KernelArgument
from ..util.errors import LaunchError
from .declarations import find_declarations
from .names import parameter_types, source_name
from .sources import is_ptx

#: Types of C++ as NumPy calls them.
TYPES = {
    "float": "float32", "double": "float64", "size_t": "uint64", "bool": "bool", "__half": "float16", "half": "float16",
    "unsigned": "uint32", "signed char": "int8", "uint": "uint32", "uchar": "uint8", "ushort": "uint16",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"{long}{name}": f"{short}int{bits}" for long, short in (("", ""), ("unsigned ", "u"))
       for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long", 64), ("long long", 64))},
}  # fmt: skip
VECTORS = re.compile(r"(float|double|int|uint|short|char|uchar)([234])")
#: Content of NumPy's kinds: signs do not matter, and complex numbers are pairs.
_KINDS = {"i": "whole", "u": "whole", "b": "whole", "f": "float", "c": "float"}


def strip_qualifiers(kind: str) -> str:
    """Strip the qualifiers of a type."""
    return " ".join(re.sub(r"\b(const|volatile|__restrict__|__restrict|restrict|struct)\b", " ", kind).split())


def check_arguments(
    arguments: list[KernelArgument], words: Sequence[str], entry: str, files: Sequence[Path]
) -> list[KernelArgument]:
    """Check the arguments of a kernel by its mangled name; `LaunchError` where one has another type in C++.

    The types are those of the name, or of the declaration in the first of the files. Types that are not known, and
    pointers to bytes, take anything.
    """
    for word, argument, kind in zip(words, arguments, _find_types(entry, files), strict=False):
        base = strip_qualifiers(kind).rstrip("* []").strip()
        vector = VECTORS.fullmatch(base)
        name = TYPES.get(vector[1] if vector else base)
        pointer = kind.count("*") + kind.count("[") == 1
        if name is None or not isinstance(argument, np.ndarray if pointer else np.generic):
            continue
        needed, dtype = np.dtype(name), argument.dtype
        size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        is_same = _KINDS.get(dtype.kind) == _KINDS[needed.kind] and (not pointer or size == needed.itemsize)
        if not is_same and not (pointer and needed.itemsize == 1) and dtype.kind != "V":
            raise LaunchError(f"argument {word[:60]}: {dtype} for a {kind}; {name} is needed")
    return arguments


def _find_types(entry: str, files: Sequence[Path]) -> list[str]:
    types = parameter_types(entry)
    if types is not None or not files or is_ptx(files[0]):
        return types or []
    declared_kernels = find_declarations(files[0].read_text(encoding="utf-8", errors="replace"))
    return next(
        (
            [kind for kind, _ in declaration.parameters]
            for declaration in declared_kernels
            if declaration.name == source_name(entry)
        ),
        [],
    )
