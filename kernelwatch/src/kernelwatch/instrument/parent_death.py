"""Processes that end with the one that began them, even if that is killed: the system sends them a signal.

A process that has RUN in its environment and imports this module asks for the signal, and so does all that it forks.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

#: The number of the process that must not be outlived.
RUN = "KERNELWATCH_RUN"

#: From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1

#: Looked up before any fork, behind which it might wait for a lock that nobody holds.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)

_forking = 0


def end_with_parent() -> None:
    """Have this process killed when the thread of its parent ends that began it."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _note_parent() -> None:
    global _forking  # noqa: PLW0603 -- the one who forks
    _forking = os.getpid()


def _forked() -> None:
    end_with_parent()
    if os.getppid() != _forking:  # it was gone before the signal was asked for
        os._exit(1)


def _is_over(process: int) -> bool:
    """Whether a process has ended, also if nobody has taken notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


if sys.platform == "linux" and RUN in os.environ:
    os.register_at_fork(before=_note_parent, after_in_child=_forked)
    end_with_parent()
    if _is_over(int(os.environ[RUN])):
        os._exit(1)
