"""Handling of unexpected errors of a command: one line, and a reserved exit code."""

import functools
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

from kernelwatch.error_text import one_line

P = ParamSpec("P")

#: The exit code when a command cannot answer. 1 is a verdict of some commands.
FAILED_CODE = 2


def catch_errors(main: Callable[P, int]) -> Callable[P, int]:
    """Wrap a command so that errors give one line on standard error and exit code 2 instead of a traceback.

    BrokenPipeError, SystemExit and KeyboardInterrupt pass through.
    """

    @functools.wraps(main)
    def run_guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return main(*args, **kwargs)
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 -- an error must not look like a verdict
            print(f"{sys.argv[0]}: {_format_error(error)}", file=sys.stderr)
            return FAILED_CODE

    return run_guarded


def _format_error(error: Exception) -> str:
    from kernelwatch.errors import ERRORS  # noqa: PLC0415 -- imports all of ptxcount

    if isinstance(error, ERRORS):
        return one_line(error)
    *_, place = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {one_line(error)} (unexpected, at {place.filename}:{place.lineno})"


def report_failure(action: str, error: object) -> int:
    """Print "cannot ACTION: ERROR" on standard error; return FAILED_CODE."""
    print(f"cannot {action}: {error}", file=sys.stderr)
    return FAILED_CODE
