"""The machine's name and facts, with and without a GPU, and the record of a run."""

from __future__ import annotations

import ctypes
import json
import platform
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pynvml
import pytest

from kernelwatch import suite
from kernelwatch.errors import NoDeviceError
from kernelwatch.instrument import machine, prebuild, tools
from kernelwatch.kernel import loading
from kernelwatch.runner.messages import Configuration
from kernelwatch.runner.record import RunRecord
from kernelwatch.store import models, record
from kernelwatch.store.folders import CommitFiles
from kernelwatch.toolchain import nvcc_call


class FakeNvml:
    """Answers NVML's calls like an H200 that throttles and does not tell its temperature."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def lost(*_: Any) -> None:
            raise pynvml.NVMLError_GpuIsLost

        answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetMaxClockInfo": 3201,
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetMemoryBusWidth": 6016,
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlSystemGetCudaDriverVersion_v2": 13000,
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlDeviceGetEnforcedPowerLimit": 700000,
            "nvmlDeviceGetPowerUsage": 76000,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x8,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(pynvml, name, lambda *_, answer=answer: answer)
        self.asked: list[Any] = []
        monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", lost)
        for by in ("Index", "UUID"):
            monkeypatch.setattr(pynvml, f"nvmlDeviceGetHandleBy{by}", self._handle)
        # _VOLATILE holds some of NVML's functions themselves.
        for fact, function in list(machine._VOLATILE.items()):
            name = getattr(function, "__name__", "")
            if name in answers:
                monkeypatch.setitem(machine._VOLATILE, fact, lambda *_, answer=answers[name]: answer)

    def _handle(self, which: int | str) -> str:
        self.asked.append(which)
        return "handle"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """A machine with an H200, as far as NVML goes."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return FakeNvml(monkeypatch)


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a driver."""

    def missing() -> None:
        raise pynvml.NVMLError_LibraryNotFound

    monkeypatch.setattr(pynvml, "nvmlInit", missing)


@pytest.mark.usefixtures("nvml")
def test_gpu() -> None:
    """Name, architecture and theoretical peak: 2 x 3201 MHz x 6016 bits / 8."""
    gpu = machine.gpu()
    assert gpu == machine.Gpu("NVIDIA H200", "sm_90", 2 * 3201e6 * 6016 / 8)
    assert machine.default_name(gpu) == "nvidia-h200"
    assert machine.stable("nvidia-h200", gpu)["gpu"] == "NVIDIA H200"


@pytest.mark.usefixtures("nvml")
def test_what_is_built_for_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What the suite's times launch, and nothing else; an error is told."""
    built: list[tuple[str, ...]] = []

    def fails(wanted: list[prebuild.Configuration]) -> list[Exception]:
        built.extend(wanted)
        return [ValueError("no")] * len(wanted)

    monkeypatch.setattr(prebuild, "compiled", fails)
    monkeypatch.setattr(tools, "prebuild", lambda arch: built.append((arch,)))
    prebuild.for_device()
    launches = (sweep.launch(point) for sweep in suite.current().timed for point in sweep.points())
    assert {*built} == {(each.kernel, each.dtype, each.flags, "sm_90") for each in launches} | {("sm_90",)}
    assert "row_sum, float32, -Xptxas -O3, sm_90: no\n" in capsys.readouterr().out


@pytest.mark.parametrize("silent", ["nvmlDeviceGetMemoryBusWidth", "nvmlDeviceGetMaxClockInfo"])
def test_no_peak(silent: str, nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that does not tell what its peak follows from is a GPU all the same."""

    def not_supported(*_: Any) -> None:
        raise pynvml.NVMLError_NotSupported

    monkeypatch.setattr(pynvml, silent, not_supported)
    assert machine.gpu() == machine.Gpu("NVIDIA H200", "sm_90", None)


@pytest.mark.usefixtures("no_driver")
def test_no_gpu() -> None:
    """Without a driver the architecture names the machine, and there is nothing volatile to tell or to build for."""
    assert machine.gpu() is None
    assert machine.volatile() == {}
    assert machine.default_name(None) == f"no-gpu-{platform.machine()}"
    assert machine.stable("x", None)["gpu"] == "none"
    prebuild.for_device()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA GeForce RTX 3090", "nvidia-geforce-rtx-3090"),
        ("../../<b>x</b>", "b-x-b"),
        ("A100-SXM4-80GB", "a100-sxm4-80gb"),
    ],
)
def test_names_are_tame(name: str, expected: str) -> None:
    """Whatever a driver calls its GPU, the machine's name is a plain folder name."""
    assert machine.default_name(machine.Gpu(name, "sm_90", 1.0)) == expected


@pytest.mark.usefixtures("nvml")
def test_volatile() -> None:
    """Clocks, limits and throttle reasons are read; what the GPU does not tell is None."""
    facts = machine.volatile()
    assert facts["throttle_reasons"] == ["software power cap", "hardware slowdown"]
    assert facts["temperature_c"] is None
    assert (facts["driver"], facts["sm_clock_mhz"], facts["ecc"]) == ("580.1", 1980, True)
    assert set(facts) == set(machine._VOLATILE)


@pytest.mark.parametrize(
    ("visible", "asked"),
    [(None, 0), ("1,0", 1), ("GPU-abc", "GPU-abc"), ("", None), ("-1", None), ("2", None), ("MIG-x", None)],
)
def test_visible_device(visible: str | None, asked: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of CUDA_VISIBLE_DEVICES is meant; what CUDA does not see names no machine."""
    fake = FakeNvml(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert (machine.nvml() is None) == (asked is None)
    assert fake.asked == ([] if asked is None else [asked])


@pytest.mark.usefixtures("no_driver")
def test_a_record_keeps_why_configurations_failed() -> None:
    """The models that accept records take it; a record without failures has no such field."""
    commit, benchmark = 40 * "a", "track_counted.Gather.track_load_sectors"
    run = RunRecord(commit)
    run.begin(benchmark, 1)
    assert "failed" not in run.lines()[record.FILE][0]
    for place, why in enumerate(("slow", "\N{BULLET} 01\nmore", "slow")):
        run.note(Configuration(group="track_counted.Gather", place=place, params="x", failed=why), [benchmark])
    read = msgspec.convert(run.lines()[record.FILE][0], models.Run).failed
    assert [(each.reason, each.configurations) for each in read] == [("? 01", 1), ("slow", 2)]


@pytest.mark.usefixtures("no_driver")
def test_record(tmp_path: Path) -> None:
    """A run is one JSON line."""
    commit = "c0ffee" + 34 * "0"
    for _ in range(2):
        run = RunRecord(commit)
        for benchmark in ("time_x", "track_x"):
            run.begin(benchmark, 1)
        run.note(Configuration(group="x", place=0, params="", skipped="why"), ["time_x"])
        CommitFiles(tmp_path / "no-gpu", commit, "py3").save({"results": {}}, run.lines())
    one, two = record.read(tmp_path, "no-gpu")
    assert one["skipped"] == two["skipped"]
    assert one["skipped"] == [{"commit": commit, "benchmark": "time_x", "reason": "why", "configurations": 1}]
    assert one["commits"] == [commit]
    assert "release 13.0" in one["nvcc"]
    (path,) = (tmp_path / "no-gpu").iterdir()
    assert re.fullmatch(r"c0ffee00-py3-\d{8}T\d{6}Z\.runs\.jsonl", path.name)
    json.dumps(one, allow_nan=False)
    assert record.read(tmp_path, "elsewhere") == []


@pytest.mark.parametrize(
    ("driver", "compiler", "problem"),
    [
        (13000, (13, 0), None),
        (13000, (13, 4), None),
        (14010, (13, 0), None),
        (12080, (13, 0), "the driver supports CUDA 12.8, but nvcc is 13.0; update the driver, or set NVCC to"),
        (11040, (12, 9), "the driver supports CUDA 11.4, but nvcc is 12.9"),
    ],
)
def test_driver_too_old(driver: int, compiler: tuple[int, int], problem: str | None) -> None:
    """A driver of an older major version is named, with what to do."""
    said = loading.driver_problem(driver, compiler)
    assert said is None if problem is None else (said or "").startswith(problem)


class _Driver(ModuleType):
    """In place of PyCUDA's: a driver with one device, which says what CUDA it supports."""

    Error = RuntimeError

    def __init__(self, version: int) -> None:
        super().__init__("pycuda.driver")
        self.get_driver_version = lambda: version
        self.init = lambda: None
        self.Device = SimpleNamespace(count=lambda: 1)


def test_old_driver_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyCUDA starts, but the driver cannot load what nvcc makes."""
    monkeypatch.setattr(nvcc_call, "pycuda_problem", lambda: None)
    driver = _Driver(12080)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    with pytest.raises(NoDeviceError, match=r"the driver supports CUDA 12\.8, but nvcc is 13\.0; update the driver"):
        loading.context()


@pytest.mark.parametrize(
    ("library", "error", "problem"),
    [
        (False, None, r"^no GPU here: times are skipped \(there is no libcuda.so.1"),
        (True, ModuleNotFoundError("No module named 'pycuda'"), "PyCUDA is not installed .*`kernelwatch pycuda-wheel`"),
        (
            True,
            ImportError("libcuda.so.1: undefined symbol: cuCtxCreate_v4"),
            "undefined symbol: cuCtxCreate_v4; if it was built with a newer CUDA than the 12.4 of this driver, "
            "or on a newer system: update the driver, or build PyCUDA anew here",
        ),
    ],
)
def test_no_pycuda(library: bool, error: ImportError | None, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyCUDA cannot be imported, launching says why, and what to do: a driver may be too old even for that."""

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
    monkeypatch.setattr(nvcc_call, "pycuda_problem", nvcc_call.pycuda_problem.__wrapped__)
    with pytest.raises(NoDeviceError, match=problem):
        loading.context()
