"""The processes of a run end with it, even if it is killed: the system sends them a signal.

Whatever imports this package, imports this module. From then on, what a process of a run forks asks for the signal
before it does anything else. asv forks so whatever it starts: its fork server, `setup_cache`, pip. The signal comes
when the thread ends that forked; asv forks from its main thread alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The process of the run; set by `kernelwatch.scratch`.
RUN = "KERNELWATCH_RUN"

#: From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1

#: Looked up before any fork, behind which it might wait for a lock that nobody holds.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)

_forking = 0
_survives = False


@contextmanager
def forking() -> Iterator[None]:
    """Let what is forked within the block end with this process, also before there is a run."""
    before = os.environ.get(RUN)
    os.environ[RUN] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[RUN]
        if before is not None:
            os.environ[RUN] = before


@contextmanager
def surviving() -> Iterator[None]:
    """Let what is forked within the block outlive this process; it must see to its end itself."""
    global _survives  # noqa: PLW0603 -- for the fork
    _survives = True
    try:
        yield
    finally:
        _survives = False


def end_with_parent() -> None:
    """Have this process killed when its parent ends. What it executes keeps that, what it forks does not."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _note_parent() -> None:
    global _forking  # noqa: PLW0603 -- the one who forks
    _forking = os.getpid()


def _forked() -> None:
    if RUN in os.environ and not _survives:
        end_with_parent()
        if os.getppid() != _forking:  # it was gone before the signal was asked for
            os._exit(1)


def _is_over(process: int) -> bool:
    """Whether a process has ended, also if nobody has taken notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


if sys.platform == "linux":
    os.register_at_fork(before=_note_parent, after_in_child=_forked)
    if RUN in os.environ:
        end_with_parent()
        if _is_over(int(os.environ[RUN])):
            os._exit(1)
