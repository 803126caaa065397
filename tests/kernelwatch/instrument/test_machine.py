"""The machine's name and facts, with and without a GPU, and the record of a run."""

from __future__ import annotations

import ctypes
import json
import platform
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pynvml
import pytest

from gpu_kernels import KERNELS
from kernelwatch import suite
from kernelwatch.errors import NoDeviceError
from kernelwatch.instrument import machine, messages, prebuild, tools
from kernelwatch.kernel import loading
from kernelwatch.store import models, record
from kernelwatch.store.run_record import RunRecord, failures, skip_reasons
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


def test_skip_reasons() -> None:
    """Each configuration's reason is found in what asv_runner prints, whichever quotes it takes."""
    output = (
        "For parameters: 1\nasv: skipped: NotImplementedError('no driver') \n\n"
        "For parameters: 2\nasv: skipped: NotImplementedError(\"kernel 'x' is not known\") \n\n"
        "For parameters: 3\nasv: skipped: NotImplementedError('no driver') "
    )
    assert skip_reasons(output) == Counter({"no driver": 2, "kernel 'x' is not known": 1})


#: As asv prints them: a call in a traceback, chained errors, a time limit; what was skipped or printed is no failure.
FAILED = """\
For parameters: 'gather', 'float32'
Traceback (most recent call last):
  File "asv_runner/server.py", line 170, in _run_server
    main()

ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "benchmarks/track_counted.py", line 58, in setup
    raise RuntimeError(outcome.failure)
RuntimeError: gather: element [0] of the output is \N{BULLET} 01, not 02
asv: benchmark failed (exit status 1)

For parameters: 'gather', 'float64'
Traceback (most recent call last):
  File "benchmarks/track_counted.py", line 58, in setup
    raise RuntimeError(outcome.failure)
RuntimeError: gather: element [0] of the output is \N{BULLET} 01, not 02

For parameters: 'other', 'float32'
asv: skipped: NotImplementedError('this commit lacks it: RuntimeError: no')

For parameters: 'slow', 'float32'
coalescing-watch: something
asv: benchmark timed out (timeout 120.0s)

For parameters: 'good', 'float32'
RuntimeError: only printed
"""


def test_failures() -> None:
    """The last error of each configuration, in letters that the record may have."""
    told = "RuntimeError: gather: element [0] of the output is ? 01, not 02"
    assert failures(FAILED) == Counter({told: 2, "benchmark timed out (timeout 120.0s)": 1})
    assert failures("asv: setup_cache failed\n\n" + FAILED[36:]) == Counter(
        {told: 2, "benchmark timed out (timeout 120.0s)": 1}
    )


@pytest.mark.usefixtures("no_driver")
def test_a_record_keeps_why_configurations_failed() -> None:
    """The models that accept records take it; a record without failures has no such field."""
    run = RunRecord()
    run.note(40 * "a", "track_counted.Gather.track_load_sectors", "fine")
    assert "failed" not in run.line()
    run.note(40 * "a", "track_counted.Gather.track_load_sectors", FAILED)
    read = msgspec.convert(run.line(), models.Run).failed
    assert [(each.benchmark.split(".")[1], each.configurations) for each in read] == [("Gather", 2), ("Gather", 1)]


@pytest.mark.usefixtures("no_driver")
def test_a_record_says_why_sampling_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """Of each process; a record without it is as it was before."""
    run, commit, benchmark = RunRecord(), 40 * "a", "time_x.X.time_back_to_back"
    for reasons in (("sufficed", "limit", "sufficed"), ("limit", "limit", "limit")):
        for place, reason in enumerate(reasons):
            messages.stopped(reason, [place, "float32"])
        run.note(commit, benchmark, capsys.readouterr().err)
    found = msgspec.convert(run.line(), models.Run).stopped[commit][benchmark]
    assert found == {"sufficed limit": [], "limit limit": ["1, float32"]}
    run = RunRecord()
    run.note(commit, benchmark, "fine")
    assert "stopped" not in run.line()


@pytest.mark.usefixtures("no_driver")
def test_record(tmp_path: Path) -> None:
    """A run is one JSON line; a later round replaces an earlier one; damaged input loses nothing that is stored."""
    commit = "c0ffee" + 34 * "0"
    for _ in range(2):
        run = RunRecord()
        for _ in range(2):
            run.note(commit, "time_x", "asv: skipped: NotImplementedError('why') ")
        run.note(commit, "track_x", "")
        run.append_to(str(tmp_path), "no-gpu")
    RunRecord().append_to(str(tmp_path), "no-gpu")  # nothing was measured
    one, two = record.read(tmp_path, "no-gpu")
    assert one["skipped"] == two["skipped"]
    assert one["skipped"] == [{"commit": commit, "benchmark": "time_x", "reason": "why", "configurations": 1}]
    assert one["commits"] == [commit]
    assert "release 13.0" in one["nvcc"]
    assert [path.name for path in (tmp_path / "no-gpu").iterdir()] == ["runs.jsonl"]
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
        (False, None, r"there is no CUDA driver \(libcuda.so.1\); install NVIDIA's driver"),
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
        loading.load(KERNELS["offset_copy"], "float32")
