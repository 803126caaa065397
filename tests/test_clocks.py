"""The clocks around a sample, as NVML tells them, and the monitor that reads them for all."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pynvml
import pytest

from benchmarks.instruments import clocks, machine
from runner import monitor


class Gpu:
    """Answers NVML's questions about clocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: dict[int, Any] = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}
        self.reasons = 0
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
    ("reasons", "sm", "memory", "expected"),
    [
        (0, 1980, 3201, []),
        (pynvml.nvmlClocksThrottleReasonGpuIdle, 1980, 3201, []),
        (pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting, 1980, 3201, []),
        (pynvml.nvmlClocksThrottleReasonSwPowerCap, 1980, 3201, ["software power cap"]),
        (0x8 | 0x40, 1980, 3201, ["hardware slowdown", "hardware thermal slowdown"]),
        (0, 1782, 3201, []),
        (0, 1781, 3201, ["SM clock below 90% of 1980 MHz"]),
        (0, 1980, 2619, ["memory clock below 90% of 3201 MHz"]),
        (None, None, None, []),
    ],
)
def test_held_back(reasons: int | None, sm: int | None, memory: int | None, expected: list[str], gpu: Gpu) -> None:
    """Throttling and clocks below 90 % of the highest are told, idleness and settings are not."""
    watch = clocks.Watch("handle")
    gpu.reasons = reasons  # type: ignore[assignment]
    gpu.now = {pynvml.NVML_CLOCK_SM: sm, pynvml.NVML_CLOCK_MEM: memory}
    assert watch.held_back() == expected


@pytest.mark.parametrize(
    ("processes", "expected", "told"), [(1, 1, False), (2, 2, False), (2, 1, True), (3, 2, True), (None, 1, False)]
)
def test_another_process(processes: int | None, expected: int, told: bool, gpu: Gpu) -> None:
    """A sample that was taken while another process was on the GPU is nobody's time."""
    gpu.processes = processes
    assert clocks.Watch("handle", expected).held_back() == (["another process is on the GPU"] if told else [])


def test_the_monitor_answers(gpu: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects reads what is so at that moment."""
    address = str(tmp_path / "monitor")
    monkeypatch.setenv(clocks.ADDRESS, address)
    with monitor.Server(address, clocks.Watch("handle")) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        assert clocks.now() == []
        gpu.reasons = 0x4
        assert clocks.now() == ["software power cap"]
        server.shutdown()


class _Silent(socketserver.StreamRequestHandler):
    """A monitor whose handler failed: it hangs up without a word."""

    def handle(self) -> None:
        """Say nothing."""


@pytest.mark.parametrize("listening", [True, False])
def test_a_monitor_that_is_gone(listening: bool, gpu: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the monitor does not answer, this process reads the clocks itself: no sample is lost for it."""
    watch = clocks.Watch("handle")
    monkeypatch.setattr(clocks, "_own_watch", lambda: watch)
    address = str(tmp_path / "monitor")
    monkeypatch.setenv(clocks.ADDRESS, address)
    gpu.reasons = 0x4
    if listening:
        with socketserver.UnixStreamServer(address, _Silent) as server:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            assert clocks.now() == ["software power cap"]
            server.shutdown()
    assert clocks.now() == ["software power cap"]


def test_serve(gpu: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command tells its facts, answers, and ends with its standard input."""
    reading, writing = os.pipe()
    address = str(tmp_path / "monitor")
    monkeypatch.setattr(monitor, "_l2_bytes", lambda: 5)
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    stdin = os.fdopen(reading)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setenv(clocks.ADDRESS, address)
    gpu.reasons = 0x4
    thread = threading.Thread(target=monitor.serve, args=(address,), daemon=True)
    thread.start()
    for _ in range(500):
        with suppress(OSError):  # until it listens
            assert clocks._asked(address) == ["software power cap"]
            break
        thread.join(0.01)
    else:
        pytest.fail("it never answered")
    os.close(writing)
    thread.join(5)
    assert not thread.is_alive()
    stdin.close()
    assert json.loads(capsys.readouterr().out) == {"l2_bytes": 5, "others_on_gpu": 1}


def test_no_gpu_no_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU there is nothing to watch."""
    monkeypatch.setattr(machine, "nvml", lambda: None)
    with monitor.running() as facts:
        assert facts == {}
        assert clocks.ADDRESS not in os.environ


def test_a_run_has_a_monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process starts, tells its facts, is found by its address, and ends with the run."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho '{\"l2_bytes\": 5}'\ncat >/dev/null\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def noting(*args: Any, **words: Any) -> subprocess.Popen[str]:
        started.append(popen(*args, **words))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", noting)
    with monitor.running() as facts:
        assert facts == {"l2_bytes": 5}
        assert os.environ[clocks.ADDRESS].endswith("monitor")
        assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
        assert started[0].poll() is None
    assert clocks.ADDRESS not in os.environ
    assert started[0].poll() == 0


def test_a_monitor_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it does not start, the run goes on, and each process reads the clocks itself."""
    monkeypatch.setattr(machine, "nvml", lambda: "handle")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with monitor.running() as facts:
        assert facts == {}
        assert clocks.ADDRESS not in os.environ
