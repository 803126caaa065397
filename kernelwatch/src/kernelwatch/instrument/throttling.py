"""Detect whether the GPU was throttled or shared during a sample, by a query right after it.

The GPU's settings are never changed.
"""

from typing import Any

import pynvml

from kernelwatch.instrument import machine

#: Minimum share of the maximum clock for a fair sample. It was tried only on H200s: a GPU whose clocks never reach it
#: counts as throttled all the time.
EXPECTED_SHARE = 0.9

_CLOCKS = {"SM": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}


def count_processes(handle: Any) -> int:
    """Return the number of processes with a CUDA context on the GPU; 0 if NVML does not report them."""
    return len(machine.query_nvml(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ())


class ThrottleWatch:
    """Watches a GPU through NVML: its clocks, its throttle reasons, and the number of processes on it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._highest = {
            name: machine.query_nvml(pynvml.nvmlDeviceGetMaxClockInfo, handle, kind) for name, kind in _CLOCKS.items()
        }

    def find_reasons(self) -> list[str]:
        """Return why the GPU may be slow now: reasons of the driver, a low clock, another process."""
        mask = machine.query_nvml(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle) or 0
        reasons = [name for name, bit in machine.THROTTLING.items() if mask & bit]
        for name, kind in _CLOCKS.items():
            clock, highest = machine.query_nvml(pynvml.nvmlDeviceGetClockInfo, self._handle, kind), self._highest[name]
            if clock is not None and highest is not None and clock < EXPECTED_SHARE * highest:
                # Without the clock's value, which would make a new reason for each sample.
                reasons.append(f"{name} clock below {EXPECTED_SHARE:.0%} of {highest} MHz")
        if count_processes(self._handle) > 1:
            reasons.append("another process is on the GPU")
        return reasons


def watch_gpu() -> ThrottleWatch | None:
    """Return a watch of the GPU that CUDA uses by default; None if `nvml_handle` returns None."""
    handle = machine.nvml_handle()
    return None if handle is None else ThrottleWatch(handle)
