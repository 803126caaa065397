"""Says in one line which file system is full, and what to do, where Python would print a traceback."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType

from asv.console import log

from kernelwatch.command import one_line
from kernelwatch.errors import CompileError
from kernelwatch.project import ROOT
from kernelwatch.store import folders
from kernelwatch.toolchain import cache

#: What the system says where there is no room: on the disk, of one's own, or for this file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Bytes that are too few for any run: the package's environment alone takes more.
_TOO_FEW = 4 << 20

#: How tools fail that a run calls.
_TOOLS = (CompileError, subprocess.CalledProcessError)

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def explained(error: BaseException, places: Iterable[Path]) -> str | None:
    """Return what happened and what to do; None if an error, and those that it came after, are about something else.

    Parameters
    ----------
    error : BaseException
        What ended the command. A tool that fails need not say why.
    places : iterable of Path
        What it writes to: an error does not always say where it was raised.
    """
    found = next((each for each in _chain(error) if isinstance(each, OSError) and each.errno in _FULL), None)
    named = [] if found is None or found.filename is None else [Path(os.fsdecode(found.filename))]
    tight = [each for each in places if shutil.disk_usage(_existing(each)).free < _TOO_FEW]
    if found is None and not (tight and isinstance(error, _TOOLS)):
        return None
    systems = dict.fromkeys(str(_mount(each)) for each in [*named, *tight])
    where = f"the file system at {' and '.join(systems)} is full" if systems else "a file system or a quota is full"
    return (
        f"{where} ({one_line(found or error)}); make room there and run the same command again: what is stored is whole"
    )


def places() -> list[Path]:
    """Return what a run writes to."""
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))  # tempfile names another one if this is full
    return [folders.written(ROOT / "results"), temporary, ROOT / ".asv", cache.directory()]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__context__


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
        line = explained(error, places())
        if line is None:
            hook(kind, error, trace)
        else:
            log.error(line)
            log.flush()

    return told
