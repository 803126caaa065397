"""End processes with their parent, even if the parent is killed: Linux sends them SIGKILL.

Importing this module in a process with RUN in its environment requests the signal, for the process and its forks.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

#: Environment variable with the id of the process that this process must not outlive.
RUN = "KERNELWATCH_RUN"

#: Constant of <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1

#: The function prctl. A forked child could wait for ever for the loader's lock, so it is looked up before any fork.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)

_forking_process = 0


def end_with_parent() -> None:
    """Request SIGKILL for this process when the thread that started it ends. This does nothing without prctl."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _note_parent() -> None:
    global _forking_process  # noqa: PLW0603 -- the child compares the parent's id
    _forking_process = os.getpid()


def _end_child_with_parent() -> None:
    end_with_parent()
    if os.getppid() != _forking_process:  # the parent ended before this process requested the signal
        os._exit(1)


def _has_ended(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    state = status.rpartition(")")[2].split()[0]  # after the name of the program, in parentheses
    return state == "Z"  # a zombie


if sys.platform == "linux" and RUN in os.environ:
    os.register_at_fork(before=_note_parent, after_in_child=_end_child_with_parent)
    end_with_parent()
    if _has_ended(int(os.environ[RUN])):
        os._exit(1)
