"""How a command ends after an unexpected error: with one line, and an exit code that means nothing else."""

from __future__ import annotations

import functools
import re
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

#: The exit code after an unexpected error. A traceback would give 1, which some commands use as a verdict.
UNFORESEEN = 2

#: What a compiler says of a place: a file and a line, and an error there.
_PLACED = re.compile(r"\S+(?:\(\d+\)|:\d+)(?::\d+)?: (?:\w+ )?error\b.*")

#: Characters of an error's text that are shown.
_SHOWN = 300


def one_line(error: object) -> str:
    """Return an error's text as one line that a terminal can show."""
    text = "".join(each if each.isprintable() else " " for each in str(error))
    return " ".join(text.split())[:_SHOWN]


def first_error(text: str) -> str:
    """Return the first error of a compiler in a text, with its file and line; else the text's first line."""
    placed = _PLACED.search(text)
    return placed[0] if placed else one_line(next(iter(text.strip().splitlines()), ""))


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
