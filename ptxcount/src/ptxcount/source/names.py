"""Names of kernels and variables: as in C++, with templates and parameters, and as mangled (Itanium C++ ABI)."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

from ..ptx.parser import parsed
from ..util.errors import LaunchError


def find_entry(ptx: str, name: str | None) -> str:
    """The mangled name of a kernel.

    A kernel is named as mangled, or as in C++: with or without its namespace, its template's arguments, its
    parameters. None stands for the only one. A name that no kernel has is returned as it is. Raises `LaunchError` if
    several have it, or if none is named and there are several.
    """
    names = list(parsed(ptx).entries)
    if name is None:
        found = names
    else:
        found = [each for each in names if is_called(each, name)]
        if name in names or not found:
            return name
    if len(found) != 1:
        what = "no kernel is named" if name is None else f"{name!r} names {len(found)} kernels"
        texts = [demangled(each) for each in found]
        shown = found if len({*texts}) < len(texts) else texts
        raise LaunchError(f"{what}; give one of {', '.join(shown) or 'none: there are no kernels'}")
    return found[0]


def is_called(mangled: str, name: str) -> bool:
    """Whether a kernel may be called so: its C++ name, from any of its namespaces on, or less than all of it."""
    full, name_alone = demangled(mangled), cpp_name(mangled)
    spellings = {full, name_alone, name_alone + _parameters(full), source_name(mangled)}
    return any(f"::{_plain(each)}".endswith(f"::{_plain(name)}") for each in spellings)


def cpp_name(mangled: str) -> str:
    """A kernel's C++ name without its parameters: ``phys::blur<float>``."""
    full = demangled(mangled)
    return split(full[: len(full) - len(_parameters(full))], " ")[-1]


def source_name(mangled: str) -> str:
    """A kernel's or a variable's name in the source, without templates: ``own::scale`` of ``_ZN3own5scaleEPf``."""
    return cpp_name(mangled).replace("(anonymous namespace)::", "").partition("<")[0]


@lru_cache(maxsize=1 << 14)
def demangled(mangled: str) -> str:
    """A name as C++ spells it, with parameters, by the C++ library that NumPy loads; as it is without that."""
    library = _library()
    if library is None or not mangled.startswith("_Z"):
        return mangled
    status = ctypes.c_int()
    made = library.__cxa_demangle(mangled.encode(), None, None, ctypes.byref(status))
    text = ctypes.string_at(made).decode("utf-8", "replace") if made else mangled
    library.free(made)
    return text


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    except (OSError, AttributeError):
        return None
    return library


def parameter_types(mangled: str) -> list[str] | None:
    """The C++ types of a kernel's parameters; None for a name that does not say, as with ``extern "C"``."""
    found = _parameters(demangled(mangled))
    if not found:
        return None
    return [] if found in ("()", "(void)") else split(found[1:-1])


def split(text: str, separator: str = ",") -> list[str]:
    """The parts of a list, but not of the lists in brackets in it."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parameters(full: str) -> str:
    """What stands in the last brackets of a demangled name, with them."""
    depth = 0
    for place in range(len(full) - 1, -1, -1):
        depth += (full[place] == ")") - (full[place] == "(")
        if depth == 0:
            return full[place:] if full.endswith(")") and place else ""
    return ""


def _plain(name: str) -> str:
    """A name as compared: without needless spaces, and without the suffixes of numbers."""
    name = re.sub(r"\s+(?=\W)|(?<=\W)\s+", "", name.strip())
    return re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
