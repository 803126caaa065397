"""The comparison with other tools: its processes, what they print, and the command that starts them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments import nsight
from experiments.peers import __main__ as command_line
from experiments.peers import data, worker
from experiments.peers.data import Failure, MethodTime, Task
from experiments.peers.launcher import square
from experiments.peers.methods import METHODS, TRUTH, Method
from gpu_kernels import build
from gpu_kernels.sweep import Launch
from kernelwatch.instrument import machine

ONE = square("transpose_read_coalesced", 1024)
TWO = square("transpose_read_write_coalesced", 1024)
FACTS = {
    "commit": "abc",
    "uuid": "GPU-1",
    "date": "2026-01-02T03:04:05+00:00",
    "gpu": "A GPU",
    "driver": "1.2",
    "nvcc": "3.4",
    "versions": {"torch": None, "cuda-bench": "0.3.0"},
    "dtype": "float32",
    "flags": "-Xptxas -O3",
    "settings": {TRUTH: {}, "suite": {}, "nvbench_cold": {"options": ["--timeout", "2"]}},
}
UNPROFILED = "ncu profiled 0 launches of the kernels, not 22 in their order"


def _method(**settings: Any) -> Method:
    return Method("title", "text", lambda *_, **__: iter(()), settings=settings)


def method_time(method: str, one: Launch, us: float, process: int = 0, **more: Any) -> MethodTime:
    """What a method's process would have found of a launch."""
    rest = {"samples": 1, "seconds": 0.5, "start": 0.25, "cubin": "c0de", **more}
    return MethodTime(method, process, one.kernel, int(one.arguments["rows"]), us, **rest)


def test_schedule() -> None:
    """Round by round; after the first, what the defaults of those cost that are bounded."""
    methods = {"a": _method(), "b": _method(n_repeat=1)}
    expected = ["a, process 0", "b, process 0", "b, defaults", "a, process 1", "b, process 1"]
    assert list(map(str, command_line.schedule(methods, 2))) == expected


@pytest.mark.parametrize(
    ("budget", "useless", "started", "left_out"),
    [
        (100, "", ["a0", "b0", "a1", "b1", "a2", "b2"], []),
        (21, "", ["a0", "b0", "a1"], ["b, process 1", "a, process 2", "b, process 2"]),
        (0, "", [], [f"{name}, process {number}" for number in range(3) for name in "ab"]),
        (100, "b", ["a0", "b0", "a1", "b1", "a2"], []),
    ],
)
def test_budget(
    budget: float, useless: str, started: list[str], left_out: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What would not fit is left out and named; what measures nothing twice is given up. `a` takes 5 s, `b` 10 s."""
    now = 0.0

    def find(task: Task) -> list[MethodTime | Failure]:
        nonlocal now
        now += {"a": 5, "b": 10}[task.method]
        if task.method == useless:
            return [Failure(task.method, task.process, "no luck")]
        return [method_time(task.method, ONE, 1.0, task.process)]

    tasks = command_line.schedule({"a": _method(), "b": _method()}, 3)
    found = list(command_line.run(tasks, find, budget, lambda: now))
    assert [f"{entry.method}{entry.process}" for entry in found] == started
    said = capsys.readouterr().out
    assert said.count("no luck") == started.count(f"{useless}0") + started.count(f"{useless}1")
    assert said.splitlines()[-1:] == [f"no time for {len(left_out)} processes: {'; '.join(left_out)}"] or not left_out
    assert bool(left_out) == ("no time" in said)


def test_entries_are_kept_as_they_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts first, then what each process found before the next one starts; the defaults' cost of a few launches."""
    out, unfinished = tmp_path / "peers.jsonl", tmp_path / "peers.unfinished"
    asked: list[tuple[str, list[Launch]]] = []
    found: list[str] = []

    def attend(command: list[str], timeout: float) -> tuple[list[str], str | None]:
        kept = [json.loads(line) for line in unfinished.read_text().splitlines()]
        assert kept[:1] == [FACTS]
        assert len(kept) == 1 + len(found)
        launches = [Launch.parse(word) for word in command if word.startswith("transpose")]
        asked.append((command[0], launches))
        lines = [_line(launch, 1e-6) for launch in launches] if command[0] == sys.executable else []
        found.extend(lines or ["a failure"])
        return lines, None

    monkeypatch.setattr(machine, "gpu", lambda: SimpleNamespace(arch="sm_90"))
    monkeypatch.setattr(build, "prebuild", lambda configurations: [None for _ in configurations])
    monkeypatch.setattr(data, "facts", lambda *_: FACTS)
    monkeypatch.setattr(worker, "attend", attend)
    words = ["--kernels", ONE.kernel, "--sides", "256", "1024", "--methods", "cupyx", TRUTH, "--processes", "1"]
    assert command_line.main([*words, "--out", str(out)]) == 0
    both = [square(ONE.kernel, 256), ONE]
    assert asked == [("ncu", both), (sys.executable, both), (sys.executable, [ONE])]
    assert not unfinished.exists()
    run = data.read(out)
    assert [(time.defaults, time.launch, time.us) for time in run.times] == [
        *((False, launch, 1.0) for launch in both),
        (True, ONE, 1.0),
    ]
    assert [(failure.method, failure.error) for failure in run.failures] == [(TRUTH, UNPROFILED)]
    assert "| cupyx.profiler.benchmark |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "lines", "problem"),
    [
        ("print(1); print(2)", ["1", "2"], None),
        ("print(1); raise SystemExit(3)", ["1"], "exit code 3: nothing on standard error"),
        ("import sys; sys.exit('too bad')", [], "exit code 1: too bad"),
        ("import time; print(1, flush=True); time.sleep(60)", ["1"], "took longer than 2 s"),
        ("import subprocess; print(1, flush=True); subprocess.run(['sleep', '60'])", ["1"], "took longer than 2 s"),
    ],
)
def test_processes(program: str, lines: list[str], problem: str | None) -> None:
    """What a process printed counts, whatever becomes of it; none outlives its time, nor do its children."""
    begin = time.perf_counter()
    assert worker.attend([sys.executable, "-c", program], 2) == (lines, problem)
    assert time.perf_counter() - begin < 20


def test_no_such_tool() -> None:
    """What is not there is named."""
    assert worker.attend(["/nowhere/ncu", "x"], 2) == ([], "/nowhere/ncu is not on PATH")
    assert nsight.version("/nowhere/ncu") is None


def _csv(kernels: list[str], nanoseconds: float = 3000, unit: str = "ns") -> list[str]:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"{index}","{kernel}","{nsight.METRIC}","{unit}","{nanoseconds + index:,}"'
        for index, kernel in enumerate(kernels)
    ]
    return ["==PROF== Connected to process 1", "what the process says", head, *rows]


def _launched(*launches: Launch) -> list[str]:
    return [one.kernel for one in launches for _ in range(nsight.LAUNCHES + 1)]


def test_durations() -> None:
    """In order, without the launch that loads the code, and without kernels of others."""
    lines = _csv(["fill(int *)", *_launched(ONE), *(f"{name}(float *)" for name in _launched(TWO))])
    one, two = nsight.durations(lines, [ONE.kernel, TWO.kernel])
    assert one == pytest.approx([(3002 + place) * 1e-9 for place in range(nsight.LAUNCHES)])
    assert two == pytest.approx([(3013 + place) * 1e-9 for place in range(nsight.LAUNCHES)])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "profiled 0 launches of the kernels, not 22"),
        (_csv(_launched(ONE)), "profiled 11 launches of the kernels, not 22"),
        (_csv(_launched(TWO, ONE)), "profiled 22 launches of the kernels, not 22 in their order"),
        (_csv(_launched(ONE, TWO), unit="us"), "in 'us', not in nanoseconds"),
    ],
)
def test_other_launches(lines: list[str], message: str) -> None:
    """Durations are never given to the wrong launch, nor in the wrong unit."""
    with pytest.raises(nsight.NsightError, match=message):
        nsight.durations(lines, [ONE.kernel, TWO.kernel])


def test_nsight_version(tmp_path: Path) -> None:
    """As ncu writes it."""
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\necho 'Version 2025.3.1.0 (build 36398880)'\n")
    ncu.chmod(0o755)
    assert nsight.version(str(ncu)) == "2025.3.1.0"


def _line(launch: Launch, *samples: float) -> str:
    return json.dumps({"launch": str(launch), "samples": samples, "seconds": 0.5, "start": 0.25, "cubin": "c0de"})


@pytest.mark.parametrize(
    ("method", "lines", "problem", "us", "error"),
    [
        ("suite", [_line(ONE, 1e-6, 3e-6, 2e-6), _line(TWO, 5e-6)], None, [2, 5], None),
        ("suite", [_line(ONE, 1e-6), '{"error": "A:\\n b"}'], "exit code 1: B", [1], "A: b"),
        ("suite", [_line(ONE, 1e-6), '{"launch": "cut o'], "took longer than 2 s", [1], "took longer than 2 s"),
        ("suite", [], None, [], "0 of 2 launches measured"),
        (TRUTH, [_line(ONE), _line(TWO), *_csv(_launched(ONE, TWO), 999)], None, [1.0045, 1.0155], None),
        (TRUTH, [_line(ONE), _line(TWO)], None, [], "ncu profiled 0 launches of the kernels, not 22 in their order"),
    ],
)
def test_entries(method: str, lines: list[str], problem: str | None, us: list[float], error: str | None) -> None:
    """Medians in microseconds of what was measured, and one reason for what was not."""
    found = list(data.entries(Task(method, 7), lines, problem, [ONE, TWO]))
    times = [entry for entry in found if isinstance(entry, MethodTime)]
    assert [entry.us for entry in times] == pytest.approx(us)
    assert [entry.launch for entry in times] == [ONE, TWO][: len(us)]
    assert [entry.error for entry in found if isinstance(entry, Failure)] == ([error] if error else [])
    assert all((entry.method, entry.process) == (method, 7) for entry in found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kernels", "nope"], "invalid choice: 'nope'"),
        (["--kernels", "stride_copy"], "invalid choice: 'stride_copy'"),
        (["--methods", "suite", "nope"], "invalid choice: 'nope'"),
        (["--sides", "256", "x"], "invalid int value: 'x'"),
    ],
)
def test_command_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not known is refused with its name."""
    with pytest.raises(SystemExit):
        command_line.main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [([], "there is no GPU here"), (["--out", "/nowhere/data", "--render", "page"], "/nowhere/data")],
)
def test_refusals(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU or without data, a line says so."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert command_line.main(words) == 1
    assert message in capsys.readouterr().err


def test_methods() -> None:
    """Each has its own title, and what it is compared with comes first."""
    assert next(iter(METHODS)) == TRUTH
    assert len({method.title for method in METHODS.values()}) == len(METHODS)
