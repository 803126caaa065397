"""Names of kernels and variables as in the source (Itanium C++ ABI, "External Names")."""

from __future__ import annotations

import re

from .errors import LaunchError
from .executable import parsed


def find_entry(ptx: str, name: str) -> str:
    """The name of a kernel in PTX.

    Parameters
    ----------
    ptx : str
        The module.
    name : str
        As mangled, or as in the source, with or without its namespace.

    Returns
    -------
    str
        As mangled; ``name`` itself if no kernel has it.

    Raises
    ------
    LaunchError
        Several kernels have the name: instances of a template.
    """
    names = parsed(ptx).entries
    found = [each for each in names if f"::{source_name(each)}".endswith(f"::{name}")]
    if name in names or not found:
        return name
    if len(found) > 1:
        raise LaunchError(f"{name!r} names {len(found)} kernels; give one of {', '.join(found)}")
    return found[0]


def source_name(mangled: str) -> str:
    """A kernel's name in the source, with its namespace.

    Parameters
    ----------
    mangled : str
        For example ``_ZN3own5scaleEPf``.

    Returns
    -------
    str
        For example ``own::scale``.
    """
    rest, parts = re.sub(r"^_ZN?", "", mangled), []
    while rest != mangled and (length := re.match(r"L?(\d{1,4})", rest)):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(parts) or mangled
