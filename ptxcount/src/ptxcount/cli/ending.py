"""Ends of commands: exit codes, interrupts, and temporary folders."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..util.environment import set_variables


def run_command(name: str, command: Callable[[], int], failure: int) -> int:
    """Run a command and return its exit code: 130 after Ctrl-C, 141 after a closed pipe, ``failure`` after `OSError`.

    Ctrl-C and `OSError` print a line on standard error that begins with ``name``. A closed pipe, or an empty name,
    prints nothing.
    """
    try:
        try:
            if sys.stdout is None:  # the shell closed it: >&-
                raise OSError("standard output is closed")
            return command()
        finally:  # also after --help
            _flush_output()
    except KeyboardInterrupt:
        return report_interrupt(name)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        _print_error(name, str(error.strerror or error))
        return failure


#: The temporary folder of the running command; empty if it has none.
_scratch: list[str] = []


@contextmanager
def interruptible_import(name: str) -> Iterator[None]:
    """Exit at once on Ctrl-C within the block, with one line: an interrupted import of NumPy would print many.

    Outside of the main thread, the block has no effect.
    """
    with _handle_signal(signal.SIGINT, lambda number, frame: os._exit(report_interrupt(name))):
        yield


@contextmanager
def scratch_folder(prefix: str) -> Iterator[None]:
    """Create a folder for temporary files of this process and its children; remove the folder after the block.

    In the main thread, SIGTERM ends the block by `SystemExit`. A block within another such block uses the same folder.
    If no folder can be created, temporary files go to their usual place.
    """
    if _scratch:
        yield
        return

    with _handle_signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number)):
        try:
            folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        except OSError:
            yield
            return
        previous = tempfile.tempdir
        with folder, set_variables({"TMPDIR": folder.name}):
            try:
                tempfile.tempdir = folder.name
                _scratch.append(folder.name)
                yield
            finally:
                _scratch.clear()
                tempfile.tempdir = previous


@contextmanager
def _handle_signal(number: int, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, previous)


def report_interrupt(name: str) -> int:
    """Print that a command was interrupted, unless ``name`` is empty; return the exit code 130."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C exits silently
    _print_error(name, "interrupted")
    return 128 + signal.SIGINT


def _print_error(name: str, text: str) -> None:
    if name and sys.stderr is not None:
        print(f"{name}: {text}", file=sys.stderr)


def _flush_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # full disk or closed pipe: otherwise Python retries at exit, and prints its own message
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
