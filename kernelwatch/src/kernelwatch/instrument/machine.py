"""Facts about this machine.

Stable facts identify the machine and its series of results in asv. Volatile facts are recorded with each run.
"""

import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

#: Prefix of the names of machines without a GPU.
NO_GPU = "no-gpu"

#: NVML's reasons for low clocks that are idleness or settings (NVML API Reference, "NvmlClocksThrottleReasons").
SETTINGS = {
    "idle": pynvml.nvmlClocksThrottleReasonGpuIdle,
    "application clocks": pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting,
    "display clocks": pynvml.nvmlClocksThrottleReasonDisplayClockSetting,
}
#: NVML's reasons for low clocks that slow down a working GPU.
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
    """The GPU that CUDA programs use by default: the driver's name, and `arch`, such as "sm_90"."""

    name: str
    arch: str
    #: The theoretical peak: 2 x memory clock x bus width / 8 (two transfers per clock); None if NVML does not report
    #: it.
    peak_bytes_per_second: float | None


def nvml_handle() -> Any:
    """Return NVML's handle of the GPU that CUDA uses by default.

    Return None if NVML finds no GPU, or CUDA_VISIBLE_DEVICES hides all GPUs or names a MIG slice. CUDA and NVML number
    GPUs in the same order only with CUDA_DEVICE_ORDER=PCI_BUS_ID. Raises NVMLError if the GPU is lost, or if no GPU has
    the UUID in CUDA_VISIBLE_DEVICES.
    """
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return None
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    if device.startswith("GPU-"):
        return pynvml.nvmlDeviceGetHandleByUUID(device)
    if device.isdigit() and int(device) < pynvml.nvmlDeviceGetCount():
        return pynvml.nvmlDeviceGetHandleByIndex(int(device))
    return None


def find_gpu() -> Gpu | None:
    """Return the GPU that CUDA uses by default; None if `nvml_handle` returns None. Does not initialise CUDA."""
    handle = nvml_handle()
    if handle is None:
        return None
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    clock = query_nvml(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM)
    width = query_nvml(pynvml.nvmlDeviceGetMemoryBusWidth, handle)
    peak = None if clock is None or width is None else 2 * clock * 1e6 * width / 8
    return Gpu(pynvml.nvmlDeviceGetName(handle), f"sm_{major}{minor}", peak)


def query_nvml(query: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of an NVML function, or None if it fails: a missing fact must not stop a measurement."""
    try:
        return query(*arguments)
    except pynvml.NVMLError:
        return None


def default_name(device: Gpu | None) -> str:
    """Return the machine's name in results: the GPU's name, or "no-gpu" and the CPU's architecture.

    Host names are not used, because they change.
    """
    if device is None:
        return f"{NO_GPU}-{platform.machine()}"
    return re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")


def stable_facts(name: str, device: Gpu | None) -> dict[str, str]:
    """Return the facts that identify a series in asv: name, system, CPU architecture and model of the GPU."""
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


def volatile_facts() -> dict[str, Any]:
    """Return the GPU's current facts; a value is None if the GPU does not report it. Without a GPU, there are none."""
    handle = nvml_handle()
    return {} if handle is None else {name: query_nvml(fact, handle) for name, fact in _VOLATILE.items()}


def host_facts() -> dict[str, Any]:
    """Return facts of the host for the record of a run. These facts change too often to identify a series."""
    return {
        "node": platform.node(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
