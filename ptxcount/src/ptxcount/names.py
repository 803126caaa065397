"""Names of kernels and variables as in the source (Itanium C++ ABI, "External Names")."""

from __future__ import annotations

import re

from .errors import LaunchError
from .executable import parsed


def find_entry(ptx: str, name: str) -> str:
    """The mangled name of a kernel that is given as mangled or as in the source, with or without its namespace.

    A name that no kernel has is returned as it is. Raises `LaunchError` if several have it: instances of a template.
    """
    names = parsed(ptx).entries
    found = [each for each in names if f"::{source_name(each)}".endswith(f"::{name}")]
    if name in names or not found:
        return name
    if len(found) > 1:
        raise LaunchError(f"{name!r} names {len(found)} kernels; give one of {', '.join(found)}")
    return found[0]


def source_name(mangled: str) -> str:
    """A kernel's name in the source: ``own::scale`` of ``_ZN3own5scaleEPf``."""
    rest, parts = re.sub(r"^_ZN?", "", mangled), []
    while rest != mangled and (length := re.match(r"L?(\d{1,4})", rest)):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(parts) or mangled
