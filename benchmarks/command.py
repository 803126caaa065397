"""How a command of the project ends when something unforeseen befalls it: one line, and an exit code of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

#: The exit code of what nobody foresaw. A traceback's would be 1, which is a verdict of some commands.
UNFORESEEN = 2

#: What is shown of an error's text.
_SHOWN = 300


def one_line(error: object) -> str:
    """What a terminal can show of an error's text in one line."""
    text = "".join(each if each.isprintable() else " " for each in str(error))
    return " ".join(text.split())[:_SHOWN]


def without_traceback(main: Callable[P, int]) -> Callable[P, int]:
    """Let a command end with one line on standard error and exit code 2 where it would end with a traceback.

    Parameters
    ----------
    main : callable
        The command; it returns its exit code.

    Returns
    -------
    callable
        The same, which raises no Exception, and whose output is written when it returns.
    """

    @functools.wraps(main)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            code = main(*args, **kwargs)
            _flush()
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is no verdict
            print(f"{main.__module__.removesuffix('.__main__')}: {_told(error)}", file=sys.stderr)
            return UNFORESEEN
        return code

    return guarded


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:  # a full disk, a closed pipe: Python would try again at its end, and exit with a code of its own
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _told(error: Exception) -> str:
    """The error and where it was raised, in one line that a terminal can show."""
    *_, place = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {one_line(error)} (unforeseen, at {place.filename}:{place.lineno})"
