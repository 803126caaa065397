"""Says in one line which file system is full, and what to do, where Python would print a traceback."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from asv.console import log

from benchmarks import ROOT
from gpu_kernels import cache
from runner import folders

#: What the system says where there is no room: on the disk, of one's own, or for this file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Bytes that are too few for any run.
_TOO_FEW = 1 << 20

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def explained(error: BaseException, places: Iterable[Path]) -> str | None:
    """Return what happened and what to do; None if an error, and those that it came after, are about something else.

    Parameters
    ----------
    error : BaseException
        What ended the command.
    places : iterable of Path
        What it writes to: an error does not always say where it was raised.
    """
    while not (isinstance(error, OSError) and error.errno in _FULL):
        if error.__context__ is None:
            return None
        error = error.__context__
    named = [Path(os.fsdecode(error.filename))] if error.filename is not None else []
    full = [*named, *(each for each in places if shutil.disk_usage(_existing(each)).free < _TOO_FEW)]
    systems = dict.fromkeys(str(_mount(each)) for each in full)
    where = f"the file system at {' and '.join(systems)} is full" if systems else "a file system or a quota is full"
    return (
        f"{where} ({os.strerror(error.errno or 0)}); make room there and run the same command again: what is stored is "
        "whole, and a run goes on where it was ended"
    )


def _existing(path: Path) -> Path:
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _mount(path: Path) -> Path:
    """Return the folder at which the file system of a path is mounted."""
    found = _existing(path).resolve()
    return next(each for each in (found, *found.parents) if each.is_mount())


def install() -> None:
    """Put this in the place of tracebacks."""
    sys.excepthook = _told(sys.excepthook)


def _told(hook: Hook) -> Hook:
    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        temporary = Path(os.environ.get("TMPDIR", "/tmp"))  # tempfile names another one if this is full
        line = explained(error, [folders.written(ROOT / "results"), temporary, ROOT / ".asv", cache.directory()])
        if line is None:
            hook(kind, error, trace)
        else:
            log.error(line)
            log.flush()

    return told
