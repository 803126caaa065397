"""How a command ends that the terminal ends: with a line or in silence, and the exit code that shells know."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def ended(name: str, command: Callable[[], int], failure: int) -> int:
    """The exit code of a command: its own; 130 after Ctrl-C, 141 if nobody reads on, or that of a failed output.

    Its line on standard error begins with its name; without one there is none.
    """
    try:
        try:
            if sys.stdout is None:  # so Python has it if the shell says >&-
                raise OSError("standard output is closed")
            return command()
        finally:  # also after --help
            _flush()
    except KeyboardInterrupt:
        return interrupted(name)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        _say(name, str(error.strerror or error))
        return failure


def interrupted(name: str) -> int:
    """Say that a command was; return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the next one needs no words
    _say(name, "interrupted")
    return 128 + signal.SIGINT


def _say(name: str, text: str) -> None:
    if name and sys.stderr is not None:
        print(f"{name}: {text}", file=sys.stderr)


def _flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # a full disk, a closed pipe: Python would try again at its end, and say so in its own way
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
