"""asv's processes end with the run that started them, even if that is killed: the system sends them a signal.

asv imports every module of this folder in its fork server and where it discovers benchmarks. The signal comes when the
thread ends that forked; asv forks from its main thread alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

#: The process of the run; set by `runner.scratch`.
RUN = "COALESCING_WATCH_RUN"

#: From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have this process killed when its parent ends; a process that it forks says so for itself."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if RUN in os.environ and sys.platform == "linux":
    end_with_parent()
    os.register_at_fork(after_in_child=end_with_parent)
    try:
        os.kill(int(os.environ[RUN]), 0)
    except ProcessLookupError:  # it was gone before the signal was asked for
        os._exit(1)
