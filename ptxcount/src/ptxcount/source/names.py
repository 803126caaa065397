"""Names of kernels and variables: C++ names with templates and parameters, and mangled names (Itanium C++ ABI)."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from ..util.errors import LaunchError

if TYPE_CHECKING:
    import ctypes


#: An ABI tag of the Itanium C++ ABI. Numba gives its kernels tags, which name a version and options.
_ABI_TAG = re.compile(r"\[abi:\w+\]")
#: Changes of the nesting depth by a character.
_BRACKETS = dict.fromkeys("([{", 1) | dict.fromkeys(")]}", -1)
_ANGLES = {"<": 1, ">": -1}


def find_entry(ptx: str, name: str | None) -> str:
    """Find the mangled name of a kernel.

    ``name`` is a mangled name, or a C++ name as for `select_kernels`. None selects the only kernel. A name that no
    kernel has is returned unchanged. Raises `LaunchError` if several kernels match, or if
    ``name`` is None and there are no kernels.
    """
    from ..ptx.parser import parse_cached  # noqa: PLC0415 - with all of NumPy, which demangling does without

    names = list(parse_cached(ptx).entries)
    if name is None and not names:
        raise LaunchError("the source has no kernels; it needs a __global__ function or, in PTX, an .entry")
    matches = names if name is None else select_kernels(names, name)
    if name is not None and not matches:
        return name
    if len(matches) != 1:
        problem = "the source has" if name is None else f"{name!r} names"
        texts = [demangle(match) for match in matches]
        shown = matches if len({*texts}) < len(texts) else texts
        raise LaunchError(f"{problem} {len(matches)} kernels; name one of {', '.join(shown)} (--entry)")
    return matches[0]


def require_entry(entries: Collection[str], entry: str) -> None:
    """Raise `LaunchError` if ``entry`` is not the mangled name of a kernel in ``entries``."""
    if entry not in entries:
        remedy = "the file has none; of a template, name an instance, such as scale<float>"
        if entries:
            remedy = f"name one of {', '.join(map(demangle, entries))} (--entry)"
        raise LaunchError(f"there is no kernel {entry!r}; {remedy}")


def select_kernels(mangled_names: Collection[str], name: str) -> list[str]:
    """Return the kernels, or variables, that a name matches, as mangled names.

    Outer namespaces, template arguments and parameters may be missing. One that has none of these namespaces is
    preferred: ``scale`` is ``::scale`` rather than ``own::scale``.
    """
    if name in mangled_names:
        return [name]
    ending = f"::{_normalize(name)}"
    spellings = {mangled: {f"::{_normalize(text)}" for text in _list_spellings(mangled)} for mangled in mangled_names}
    exact = [mangled for mangled, texts in spellings.items() if ending in texts]
    if len(exact) == 1:
        return exact
    return [mangled for mangled, texts in spellings.items() if any(text.endswith(ending) for text in texts)]


def find_unique_name(mangled_names: Collection[str], mangled: str, name: str) -> str:
    """Return ``name``; if it matches several kernels, the kernel's name with parameters, or the mangled name."""
    texts = (name, cpp_name(mangled) + _find_parameters(demangle(mangled)), mangled)
    return next(text for text in texts if select_kernels(mangled_names, text) == [mangled])


def _list_spellings(mangled: str) -> list[str]:
    full, name_alone = demangle(mangled), cpp_name(mangled)
    return [full, name_alone, name_alone + _find_parameters(full), source_name(mangled)]


def cpp_name(mangled: str) -> str:
    """Return a kernel's C++ name without return type and parameters: ``phys::blur<float>``."""
    full = demangle(mangled)
    return split_list(full[: len(full) - len(_find_parameters(full))], " ")[-1]


def source_name(mangled: str) -> str:
    """Return the C++ name without template arguments, ABI tags and anonymous namespaces: ``own::scale``."""
    name = _ABI_TAG.sub("", cpp_name(mangled))
    return name.replace("(anonymous namespace)::", "").partition("<")[0]


@lru_cache(maxsize=1 << 14)
def demangle(mangled: str) -> str:
    """Demangle a name; return it unchanged if it is no valid mangled name, or if the C++ library is missing."""
    if not mangled.startswith("_Z") or (library := _load_library()) is None:
        return mangled
    import ctypes  # noqa: PLC0415 - as in _load_library

    status = ctypes.c_int()
    demangled_bytes = library.__cxa_demangle(mangled.encode(), None, None, ctypes.byref(status))
    text = ctypes.string_at(demangled_bytes).decode("utf-8", "replace") if demangled_bytes else mangled
    library.free(demangled_bytes)
    return text


@lru_cache(maxsize=1)
def _load_library() -> ctypes.CDLL | None:
    import ctypes  # noqa: PLC0415 - a check of cached counts does without

    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    except (OSError, AttributeError):
        return None
    return library


def parameter_types(mangled: str) -> list[str] | None:
    """Return the C++ types of a kernel's parameters; None if the name lacks these types, as with ``extern "C"``."""
    parameters = _find_parameters(demangle(mangled))
    if not parameters:
        return None
    return [] if parameters in ("()", "(void)") else split_list(parameters[1:-1])


def split_list(text: str, separator: str = ",") -> list[str]:
    """Split a text at separators outside of brackets: "int, a<b, c>" -> ["int", "a<b, c>"].

    ``<`` and ``>`` are brackets unless they are part of ``<<``, or within other brackets, where they compare.
    """
    parts, depth, angles = [""], 0, 0
    for sign in re.findall("<<|.", text, re.S):
        depth += _BRACKETS.get(sign, 0)
        if depth == 0:
            angles += _ANGLES.get(sign, 0)
        if sign == separator and depth == angles == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _find_parameters(full: str) -> str:
    """Return the list of parameters that ends a demangled name: "k(int, float*)" -> "(int, float*)"; else ""."""
    depth = 0
    for place in range(len(full) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(full[place], 0)
        if depth == 0:  # the opening parenthesis, or the last character of a name without parameters
            return full[place:] if full.endswith(")") and place else ""
    return ""


def _normalize(name: str) -> str:
    """Remove redundant spaces and suffixes of numbers, for comparing names: "k<4u, int *>" -> "k<4,int*>"."""
    name = re.sub(r"\s+(?=\W)|(?<=\W)\s+", "", name.strip())
    return re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
