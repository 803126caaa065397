"""Facts about this machine. Stable facts name it and its series; changing ones are recorded beside the results."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from kernelwatch.toolchain import nvcc

#: What the names of machines without a GPU begin with.
NO_GPU = "no-gpu"

#: NVML's reasons why clocks are not at their highest (NVML API Reference, "NvmlClocksThrottleReasons"): idleness and
#: settings, and those that slow down a GPU at work.
SETTINGS = {
    "idle": pynvml.nvmlClocksThrottleReasonGpuIdle,
    "application clocks": pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting,
    "display clocks": pynvml.nvmlClocksThrottleReasonDisplayClockSetting,
}
THROTTLING = {
    "software power cap": pynvml.nvmlClocksThrottleReasonSwPowerCap,
    "hardware slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "sync boost": pynvml.nvmlClocksThrottleReasonSyncBoost,
    "software thermal slowdown": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "hardware thermal slowdown": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hardware power brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
}


@dataclass(frozen=True)
class Gpu:
    """The GPU that CUDA programs use by default: its name as the driver gives it, and its `arch`, such as "sm_90"."""

    name: str
    arch: str
    #: 2 x memory clock x bus width / 8 (two transfers a clock), the theoretical peak; None where the GPU does not tell.
    peak_bytes_per_second: float | None


def nvml() -> Any:
    """NVML's handle of the GPU that CUDA uses by default, or None without a driver or a GPU.

    The same one only where CUDA counts devices as NVML does, by PCI bus: CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return None
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    if chosen.startswith("GPU-"):
        return pynvml.nvmlDeviceGetHandleByUUID(chosen)
    if chosen.isdigit() and int(chosen) < pynvml.nvmlDeviceGetCount():
        return pynvml.nvmlDeviceGetHandleByIndex(int(chosen))
    return None  # hidden from CUDA, or a slice that has no name of its own


def gpu() -> Gpu | None:
    """The GPU of this machine, or None. Does not initialise CUDA."""
    handle = nvml()
    if handle is None:
        return None
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    clock = ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM)
    width = ask(pynvml.nvmlDeviceGetMemoryBusWidth, handle)
    peak = None if clock is None or width is None else 2 * clock * 1e6 * width / 8
    return Gpu(pynvml.nvmlDeviceGetName(handle), f"sm_{major}{minor}", peak)


def ask(question: Callable[..., Any], *about: Any) -> Any:
    """The answer of one of NVML's functions, None if it fails: no sample or record is lost for a fact beside it."""
    try:
        return question(*about)
    except pynvml.NVMLError:
        return None


def nvcc_release() -> str | None:
    """The compiler's release, such as "13.0.88"; None if it does not say. Raises NvccNotFoundError if there is none."""
    found = re.search(r"V([\d.]+)", nvcc.version(nvcc.find_nvcc()))
    return found[1] if found else None


def default_name(device: Gpu | None) -> str:
    """The machine's name in results: the GPU's name, because host names of runners change, else the architecture's."""
    if device is None:
        return f"{NO_GPU}-{platform.machine()}"
    return re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")


def stable(name: str, device: Gpu | None) -> dict[str, str]:
    """The facts that name a series in asv: only those that another machine with the same kind of GPU shares."""
    return {
        "machine": name,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": "",
        "num_cpu": "",
        "ram": "",
        "gpu": device.name if device else "none",
    }


def _throttle_reasons(handle: Any) -> list[str]:
    mask = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return [name for name, bit in {**SETTINGS, **THROTTLING}.items() if mask & bit]


_VOLATILE: dict[str, Callable[[Any], Any]] = {
    "driver": lambda _: pynvml.nvmlSystemGetDriverVersion(),
    "cuda": lambda _: pynvml.nvmlSystemGetCudaDriverVersion_v2(),
    "uuid": pynvml.nvmlDeviceGetUUID,
    "sm_clock_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "max_sm_clock_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "max_memory_clock_mhz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "application_sm_clock_mhz": lambda handle: pynvml.nvmlDeviceGetApplicationsClock(handle, pynvml.NVML_CLOCK_SM),
    "application_memory_clock_mhz": lambda handle: pynvml.nvmlDeviceGetApplicationsClock(handle, pynvml.NVML_CLOCK_MEM),
    "memory_bus_bits": pynvml.nvmlDeviceGetMemoryBusWidth,
    "power_limit_mw": pynvml.nvmlDeviceGetEnforcedPowerLimit,
    "power_mw": pynvml.nvmlDeviceGetPowerUsage,
    "ecc": lambda handle: bool(pynvml.nvmlDeviceGetEccMode(handle)[0]),
    "throttle_reasons": _throttle_reasons,
    "temperature_c": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
}


def volatile() -> dict[str, Any]:
    """The facts of this moment, by name. A fact that the GPU does not report is None. Empty without a GPU."""
    handle = nvml()
    return {} if handle is None else {name: ask(fact, handle) for name, fact in _VOLATILE.items()}


def host() -> dict[str, Any]:
    """Facts of the host that may matter but change too often to name a series."""
    return {
        "node": platform.node(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
