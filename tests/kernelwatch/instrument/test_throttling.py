"""The clocks around a sample, as NVML tells them."""

from __future__ import annotations

from typing import Any

import pynvml
import pytest

from kernelwatch.instrument import throttling


class Gpu:
    """Answers NVML's questions about clocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: dict[int, Any] = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}
        self.reasons: int | None = 0
        self.processes: int | None = 1
        highest = dict(self.now)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetMaxClockInfo", lambda _, kind: highest[kind])
        monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", lambda _, kind: self._answer(self.now[kind]))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda _: self._answer(self.reasons))
        running = "nvmlDeviceGetComputeRunningProcesses"
        monkeypatch.setattr(pynvml, running, lambda _: [None] * self._answer(self.processes))

    @staticmethod
    def _answer(value: Any) -> Any:
        if value is None:
            raise pynvml.NVMLError_NotSupported
        return value


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """A GPU that runs as fast as it may."""
    return Gpu(monkeypatch)


@pytest.mark.parametrize(
    ("reasons", "sm", "memory", "processes", "expected"),
    [
        (0, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonGpuIdle, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonSwPowerCap, 1980, 3201, 1, ["software power cap"]),
        (0x8 | 0x40, 1980, 3201, 1, ["hardware slowdown", "hardware thermal slowdown"]),
        (0, 1782, 3201, 1, []),
        (0, 1781, 3201, 1, ["SM clock below 90% of 1980 MHz"]),
        (0, 1980, 2619, 1, ["memory clock below 90% of 3201 MHz"]),
        (0, 1980, 3201, 2, ["another process is on the GPU"]),
        (0, 1980, 3201, 3, ["another process is on the GPU"]),
        (None, None, None, None, []),
    ],
)
def test_held_back(
    reasons: int | None, sm: int | None, memory: int | None, processes: int | None, expected: list[str], gpu: Gpu
) -> None:
    """Throttling, clocks below 90 % of the highest and other processes are told; idleness and settings are not."""
    watch = throttling.Watch("handle")
    gpu.reasons, gpu.processes = reasons, processes
    gpu.now = {pynvml.NVML_CLOCK_SM: sm, pynvml.NVML_CLOCK_MEM: memory}
    assert watch.held_back() == expected
