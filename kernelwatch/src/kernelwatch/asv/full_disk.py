"""Says in one line which file system is full, and what to do, where Python would print a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from asv.console import log

from kernelwatch.command import one_line

#: What the system says where there is no room: on the disk, of one's own, or for this file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def explained(error: BaseException | None) -> str | None:
    """Return what happened and what to do; None if an error, and those that it came after, are about something else."""
    while error is not None and not (isinstance(error, OSError) and error.errno in _FULL):
        error = error.__context__
    if error is None:
        return None
    where = "a file system or a quota is full"
    if error.filename is not None:
        path = Path(os.fsdecode(error.filename)).absolute()
        mount = next(each for each in (path, *path.parents) if each.is_mount())
        where = f"the file system at {mount} is full"
    return f"{where} ({one_line(error)}); make room there and run the same command again: what is stored is whole"


def install() -> None:
    """Put this in the place of tracebacks."""
    sys.excepthook = _told(sys.excepthook)


def _told(hook: Hook) -> Hook:
    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        line = explained(error)
        if line is None:
            hook(kind, error, trace)
        else:
            log.error(line)
            log.flush()

    return told
