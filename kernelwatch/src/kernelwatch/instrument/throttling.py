"""Tells whether the GPU was throttled or shared during a sample, by asking right after it.

The GPU's settings are never changed.
"""

from __future__ import annotations

from typing import Any

import pynvml

from kernelwatch.instrument import machine

#: A clock below this share of its maximum is too slow for a fair sample. GPUs that never hold that clock under such
#: work would always be held back; none but H200s were tried.
EXPECTED_SHARE = 0.9

_KINDS = {"SM": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}


def processes(handle: Any) -> int:
    """How many processes have a CUDA context on the GPU; 0 where NVML does not tell."""
    return len(machine.ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ())


class Watch:
    """Watches one GPU's clocks, by NVML's handle, for the only process that should be on it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._highest = {
            name: machine.ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, kind) for name, kind in _KINDS.items()
        }

    def held_back(self) -> list[str]:
        """Why the GPU runs slower than it could at this moment; empty if it does not."""
        mask = machine.ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle) or 0
        reasons = [name for name, bit in machine.THROTTLING.items() if mask & bit]
        for name, kind in _KINDS.items():
            clock, highest = machine.ask(pynvml.nvmlDeviceGetClockInfo, self._handle, kind), self._highest[name]
            if clock is not None and highest is not None and clock < EXPECTED_SHARE * highest:
                # Not the clock itself: every other value would be another reason.
                reasons.append(f"{name} clock below {EXPECTED_SHARE:.0%} of {highest} MHz")
        if processes(self._handle) > 1:
            reasons.append("another process is on the GPU")
        return reasons


def watch() -> Watch | None:
    """Return a watch of the GPU that CUDA uses by default; None where NVML knows none."""
    handle = machine.nvml()
    return None if handle is None else Watch(handle)
