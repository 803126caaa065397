"""The GPU's clocks around a sample: whether the sample was taken while the GPU held itself back.

Reading takes NVML, and starting NVML takes 50 ms a process; so a run of the suite has one process that reads for all
(`runner/monitor.py`). Without it, this process starts NVML itself. Nothing of the GPU's settings is ever changed.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pynvml

from benchmarks.instruments import machine

#: Names the Unix socket of the run's monitor.
ADDRESS = "COALESCING_WATCH_MONITOR"

#: Seconds that the monitor may take to answer.
PATIENCE = 2.0

#: A clock below this share of its maximum is too slow for a fair sample.
EXPECTED_SHARE = 0.9

#: NVML's reasons that are no setting and no idleness (NVML API Reference, "NvmlClocksThrottleReasons").
THROTTLING = {
    "software power cap": pynvml.nvmlClocksThrottleReasonSwPowerCap,
    "hardware slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "sync boost": pynvml.nvmlClocksThrottleReasonSyncBoost,
    "software thermal slowdown": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "hardware thermal slowdown": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hardware power brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
}

_KINDS = {"SM": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}


def _ask(question: Callable[..., Any], *about: Any) -> Any:
    """The answer of one of NVML's functions, or None: some GPUs do not tell."""
    try:
        return question(*about)
    except pynvml.NVMLError_NotSupported:
        return None


class Watch:
    """Watches one GPU's clocks.

    Parameters
    ----------
    handle : NVML's.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._highest = {name: _ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, kind) for name, kind in _KINDS.items()}

    def held_back(self) -> list[str]:
        """Why the GPU does not run as fast as it might, at this moment; empty if it does."""
        mask = _ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle) or 0
        reasons = [name for name, bit in THROTTLING.items() if mask & bit]
        for name, kind in _KINDS.items():
            clock, highest = _ask(pynvml.nvmlDeviceGetClockInfo, self._handle, kind), self._highest[name]
            if clock is not None and highest is not None and clock < EXPECTED_SHARE * highest:
                reasons.append(f"{name} clock {clock} of {highest} MHz")
        return reasons


@lru_cache
def _own_watch() -> Watch | None:
    handle = machine.nvml()
    return None if handle is None else Watch(handle)


def now() -> list[str]:
    """Why the GPU is held back at this moment; empty if it is not, or if there is none."""
    address = os.environ.get(ADDRESS)
    if address is not None:
        with suppress(OSError):  # the monitor is gone: a sample must not be lost for that
            return _asked(address)
    watch = _own_watch()
    return [] if watch is None else watch.held_back()


def _asked(address: str) -> list[str]:
    """What the monitor says. Raises OSError if it does not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(address)
        with connection.makefile(encoding="utf-8") as answer:
            text = answer.read()
    if not text:
        raise ConnectionResetError(f"the monitor at {address} said nothing")
    reasons: list[str] = json.loads(text)
    return reasons
