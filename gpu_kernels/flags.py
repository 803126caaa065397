"""The nvcc flag sets, each named by the literal text that a user would type."""

from __future__ import annotations

import shlex

from .errors import UnknownFlagsError

DEFAULT = "-Xptxas -O3"

#: To add a flag set: one row.
FLAG_SETS: tuple[str, ...] = (
    DEFAULT,
    "-Xptxas -O0",
    "-Xptxas -dlcm=cg",
)


def options(flags: str) -> tuple[str, ...]:
    """Split the flag set `flags` into nvcc's arguments.

    Raises
    ------
    UnknownFlagsError
        `flags` is not a row of the table.
    """
    if flags not in FLAG_SETS:
        raise UnknownFlagsError(
            f"flag set {flags!r} is not known; allowed are {', '.join(map(repr, FLAG_SETS))}; "
            "to add one, add a row to gpu_kernels/flags.py"
        )
    return tuple(shlex.split(flags))
