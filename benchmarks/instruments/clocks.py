"""The GPU right after a sample: whether it was throttled meanwhile, or not the sample's alone.

Reading takes NVML, and starting NVML takes 50 ms a process; so a run of the suite has one process that reads for all
(`runner/monitor.py`). Without it, this process starts NVML itself. Nothing of the GPU's settings is ever changed.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pynvml

from benchmarks.instruments import machine

#: Names the Unix socket of the run's monitor.
ADDRESS = "COALESCING_WATCH_MONITOR"

#: Seconds that the monitor may take to answer.
PATIENCE = 2.0

#: A clock below this share of its maximum is too slow for a fair sample. GPUs that never hold that clock under such
#: work would always be held back; none but H200s were tried.
EXPECTED_SHARE = 0.9

_KINDS = {"SM": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}


def processes(handle: Any) -> int:
    """How many processes have a CUDA context on the GPU; 0 where NVML does not tell."""
    return len(machine.ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ())


class Watch:
    """Watches one GPU's clocks.

    Parameters
    ----------
    handle : NVML's.
    expected : processes on the GPU while a sample is taken: the one that takes it, and maybe the monitor.
    """

    def __init__(self, handle: Any, expected: int = 1) -> None:
        self._handle = handle
        self._expected = expected
        self._highest = {
            name: machine.ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, kind) for name, kind in _KINDS.items()
        }

    def held_back(self) -> list[str]:
        """Why the GPU does not run this as fast as it might, at this moment; empty if it does."""
        mask = machine.ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle) or 0
        reasons = [name for name, bit in machine.THROTTLING.items() if mask & bit]
        for name, kind in _KINDS.items():
            clock, highest = machine.ask(pynvml.nvmlDeviceGetClockInfo, self._handle, kind), self._highest[name]
            if clock is not None and highest is not None and clock < EXPECTED_SHARE * highest:
                # Not the clock itself: every other value would be another reason.
                reasons.append(f"{name} clock below {EXPECTED_SHARE:.0%} of {highest} MHz")
        if processes(self._handle) > self._expected:
            reasons.append("another process is on the GPU")
        return reasons


@lru_cache
def _own_watch() -> Watch | None:
    handle = machine.nvml()
    return None if handle is None else Watch(handle)


def now() -> list[str]:
    """Why the GPU is held back at this moment; empty if it is not, or if there is none."""
    address = os.environ.get(ADDRESS)
    if address is not None:
        with suppress(OSError, ValueError):  # the monitor is gone: a sample must not be lost for that
            return _asked(address)
    watch = _own_watch()
    return [] if watch is None else watch.held_back()


def _asked(address: str) -> list[str]:
    """What the monitor says. Raises OSError or ValueError if it does not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(address)
        with connection.makefile(encoding="utf-8") as answer:
            reasons: list[str] = json.load(answer)
    return reasons
