"""Name, facts and run record of a machine, with and without a GPU."""

import ctypes
import platform
import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pynvml
import pytest

from kernelwatch.errors import NoDeviceError
from kernelwatch.instrument import helper_kernels, machine, prebuild, throttling
from kernelwatch.kernel import load_function
from kernelwatch.suite import registry
from kernelwatch.toolchain import nvcc, nvcc_call

CLOCKS = ("GetMaxClockInfo", "GetClockInfo", "GetApplicationsClock")


class FakeNvml:
    """A fake NVML of a throttled H200, which reports no temperature."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clocks = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}
        #: Function without "nvmlDevice" -> its result, or its results by clock; None if the GPU reports nothing.
        self.answers: dict[str, Any] = {
            "GetCount": 2,
            "GetName": "NVIDIA H200",
            "GetCudaComputeCapability": (9, 0),
            **dict.fromkeys(CLOCKS, clocks),
            "GetMemoryBusWidth": 6016,
            "GetUUID": "GPU-1",
            "GetEnforcedPowerLimit": 700000,
            "GetPowerUsage": 76000,
            "GetEccMode": [1, 1],
            "GetCurrentClocksThrottleReasons": 0x4 | 0x8,
            "GetTemperature": None,
            "GetComputeRunningProcesses": [None],
        }
        self.asked: list[Any] = []
        monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: "580.1")
        monkeypatch.setattr(pynvml, "nvmlSystemGetCudaDriverVersion_v2", lambda: 13000)
        for name in self.answers:
            monkeypatch.setattr(pynvml, f"nvmlDevice{name}", partial(self._answer, name))
        for kind in ("Index", "UUID"):
            monkeypatch.setattr(pynvml, f"nvmlDeviceGetHandleBy{kind}", self._handle)
        for fact, function in list(machine._VOLATILE.items()):  # functions of NVML itself
            if getattr(function, "__module__", "") == "pynvml":
                monkeypatch.setitem(machine._VOLATILE, fact, partial(self._answer, function.__name__[10:]))

    def _answer(self, name: str, *arguments: Any) -> Any:
        answer = self.answers[name]
        answer = answer[arguments[1]] if isinstance(answer, dict) else answer
        if answer is None:
            raise pynvml.NVMLError_NotSupported
        return answer

    def _handle(self, which: int | str) -> str:
        self.asked.append(which)
        return "handle"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return FakeNvml(monkeypatch)


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", mock.Mock(side_effect=pynvml.NVMLError_LibraryNotFound))


@pytest.mark.parametrize("silent", ["", "GetMemoryBusWidth", "GetMaxClockInfo"])
def test_gpu_has_name_and_peak(silent: str, nvml: FakeNvml) -> None:
    """The theoretical peak is 2 x 3201 MHz x 6016 bits / 8. Without one of these facts, the peak is None."""
    nvml.answers |= {silent: None}
    gpu = machine.find_gpu()
    assert gpu == machine.Gpu("NVIDIA H200", "sm_90", None if silent else 2 * 3201e6 * 6016 / 8)
    assert machine.default_name(gpu) == "nvidia-h200"
    assert machine.stable_facts("nvidia-h200", gpu)["gpu"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("reasons", "sm", "memory", "processes", "expected"),
    [
        (0, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonGpuIdle, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting, 1980, 3201, 1, []),
        (pynvml.nvmlClocksThrottleReasonSwPowerCap, 1980, 3201, 1, ["software power cap"]),
        (0x8 | 0x40, 1980, 3201, 1, ["hardware slowdown", "hardware thermal slowdown"]),
        (0, 1980 * 9 // 10, 3201, 1, []),
        (0, 1980 * 9 // 10 - 1, 3201, 1, ["SM clock below 90% of 1980 MHz"]),
        (0, 1980, 2619, 1, ["memory clock below 90% of 3201 MHz"]),
        (0, 1980, 3201, 2, ["another process is on the GPU"]),
        (None, None, None, None, []),
    ],
)
def test_reasons_for_throttled_samples(
    reasons: int | None, sm: int | None, memory: int | None, processes: int | None, expected: list[str], nvml: FakeNvml
) -> None:
    """Throttling, clocks below 90 % and other processes are reasons. Idleness and clock settings are none."""
    nvml.answers |= {
        "GetCurrentClocksThrottleReasons": reasons,
        "GetClockInfo": {pynvml.NVML_CLOCK_SM: sm, pynvml.NVML_CLOCK_MEM: memory},
        "GetComputeRunningProcesses": None if processes is None else [None] * processes,
    }
    watch = throttling.watch_gpu()
    assert watch is not None
    assert watch.find_reasons() == expected


@pytest.mark.usefixtures("nvml")
def test_prebuild_compiles_timed_launches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Helper kernels are compiled, too, and errors printed. By default, the launches are all of the suite."""
    built: list[tuple[str, ...]] = []

    def fails(cubins: list[prebuild.CubinKey]) -> list[Exception]:
        built.extend(cubins)
        return [ValueError("no")] * len(cubins)

    monkeypatch.setattr(prebuild, "compile_cubins", fails)
    monkeypatch.setattr(helper_kernels, "compile_helpers", lambda arch: built.append((arch,)))
    prebuild.compile_for_device()
    launches = (sweep.launch(point) for sweep in registry.current_suite().timed for point in sweep.points())
    assert {*built} == {(launch.kernel, launch.dtype, launch.flags, "sm_90") for launch in launches} | {("sm_90",)}
    assert "row_sum, float32, -Xptxas -O3, sm_90: no\n" in capsys.readouterr().out
    del built[:]
    sweep = registry.current_suite().timed[0]
    launch = sweep.launch(next(iter(sweep.points())))
    prebuild.compile_for_device([launch])
    assert built == [(launch.kernel, launch.dtype, launch.flags, "sm_90"), ("sm_90",)]


@pytest.mark.usefixtures("no_driver")
def test_cpu_names_machine_without_a_gpu() -> None:
    """There are no volatile facts, and nothing is compiled."""
    assert (machine.find_gpu(), throttling.watch_gpu()) == (None, None)
    assert machine.volatile_facts() == {}
    assert machine.default_name(None) == f"no-gpu-{platform.machine()}"
    assert machine.stable_facts("x", None)["gpu"] == "none"
    prebuild.compile_for_device()


@pytest.mark.parametrize(("name", "expected"), [("../../<b>x</b>", "b-x-b"), ("A100-SXM4-80GB", "a100-sxm4-80gb")])
def test_machine_names_are_folder_names(name: str, expected: str) -> None:
    assert machine.default_name(machine.Gpu(name, "sm_90", 1.0)) == expected


def test_volatile_facts_are_those_of_nvml(nvml: FakeNvml) -> None:
    nvml.answers |= {name: {key: f"{name} {key}" for key in nvml.answers[name]} for name in CLOCKS}
    sm, memory = pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM
    assert machine.volatile_facts() == {
        "driver": "580.1",
        "cuda": 13000,
        "uuid": "GPU-1",
        "sm_clock_mhz": f"GetClockInfo {sm}",
        "memory_clock_mhz": f"GetClockInfo {memory}",
        "max_sm_clock_mhz": f"GetMaxClockInfo {sm}",
        "max_memory_clock_mhz": f"GetMaxClockInfo {memory}",
        "application_sm_clock_mhz": f"GetApplicationsClock {sm}",
        "application_memory_clock_mhz": f"GetApplicationsClock {memory}",
        "memory_bus_bits": 6016,
        "power_limit_mw": 700000,
        "power_mw": 76000,
        "ecc": True,
        "throttle_reasons": ["software power cap", "hardware slowdown"],
        "temperature_c": None,
    }


@pytest.mark.parametrize(
    ("visible", "handle"),
    [(None, 0), ("1,0", 1), ("GPU-abc", "GPU-abc"), ("", None), ("-1", None), ("2", None), ("MIG-x", None)],
)
def test_first_visible_device_is_used(
    visible: str | None, handle: object, nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML has two devices. An empty list, an unknown number or a MIG slice gives none."""
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert (machine.nvml_handle() is None) == (handle is None)
    assert nvml.asked == ([] if handle is None else [handle])


@pytest.mark.parametrize(
    ("driver", "devices", "compiler", "problem"),
    [
        (13000, 1, (13, 0), None),
        (13000, 1, (13, 4), None),
        (14010, 1, (13, 0), None),
        (12080, 1, (13, 0), r"the driver supports CUDA 12\.8, but nvcc is 13\.0; update the driver, or set NVCC to"),
        (11040, 1, (12, 9), r"the driver supports CUDA 11\.4, but nvcc is 12\.9"),
        (13000, 0, (13, 0), "finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES"),
    ],
)
def test_unusable_drivers_are_refused(
    driver: int, devices: int, compiler: tuple[int, int], problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver is refused if its major version is older than nvcc's, or if it finds no device."""
    h200 = SimpleNamespace(get_device=lambda: SimpleNamespace(compute_capability=lambda: (9, 0)))
    fake_driver = SimpleNamespace(Error=RuntimeError, init=lambda: None, get_driver_version=lambda: driver)
    fake_driver.Device = SimpleNamespace(count=lambda: devices)
    fake_driver.Context = SimpleNamespace(get_current=lambda: h200)
    monkeypatch.setattr(nvcc_call, "find_pycuda_problem", lambda: None)
    monkeypatch.setattr(nvcc, "find_release", lambda _: compiler)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=fake_driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", fake_driver)
    with nullcontext() if problem is None else pytest.raises(NoDeviceError, match=problem):
        assert load_function.current_arch() == "sm_90"


@pytest.mark.parametrize(
    ("library", "error", "problem"),
    [
        (False, None, r"^no GPU can be used: libcuda.so.1"),
        (True, ModuleNotFoundError("No module named 'pycuda'"), "is not installed .*; run: kernelwatch pycuda-wheel"),
        (
            True, ImportError("libcuda.so.1: undefined symbol: cuCtxCreate_v4"),
            "undefined symbol: cuCtxCreate_v4; if it was built with a newer CUDA than this driver's 12.4, "
            "or on a newer system, update the driver, or build PyCUDA again on this machine",
        ),
    ],
)  # fmt: skip
def test_unusable_pycuda_is_explained(
    library: bool, error: ImportError | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        if not library:
            raise OSError(name)
        return SimpleNamespace(cuDriverGetVersion=lambda version: setattr(version._obj, "value", 12040))

    def find(name: str, *_: Any) -> None:
        if name.startswith("pycuda") and error is not None:
            raise error

    monkeypatch.setattr(ctypes, "CDLL", load)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=find), *sys.meta_path])
    monkeypatch.setattr(nvcc_call, "find_pycuda_problem", nvcc_call.find_pycuda_problem.__wrapped__)
    with pytest.raises(NoDeviceError, match=problem):
        load_function.current_context()
