"""How a command ends after an unexpected error: with one line, and an exit code that means nothing else."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

from kernelwatch.error_text import one_line

P = ParamSpec("P")

#: The exit code after an unexpected error. A traceback would give 1, which some commands use as a verdict.
UNFORESEEN = 2


def without_traceback(main: Callable[P, int]) -> Callable[P, int]:
    """Make a command end with one line on standard error and exit code 2 instead of a traceback.

    Parameters
    ----------
    main : callable
        The command; it returns its exit code.

    Returns
    -------
    callable
        The same, which raises no Exception but BrokenPipeError: nobody reads on.
    """

    @functools.wraps(main)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return main(*args, **kwargs)
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is no verdict
            print(f"{main.__module__.removesuffix('.__main__')}: {_told(error)}", file=sys.stderr)
            return UNFORESEEN

    return guarded


def _told(error: Exception) -> str:
    """The error and where it was raised, in one line that a terminal can show; what is raised on purpose says all."""
    from kernelwatch.errors import ERRORS  # noqa: PLC0415 -- with all of ptxcount

    if isinstance(error, ERRORS):
        return one_line(error)
    *_, place = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {one_line(error)} (unforeseen, at {place.filename}:{place.lineno})"


def cannot(do: str, error: object) -> int:
    """Say that something cannot be done, and why; return the exit code."""
    print(f"cannot {do}: {error}", file=sys.stderr)
    return UNFORESEEN
