"""The comparison with other tools: its processes, what they print, and the page made of it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.instruments import machine
from experiments import nsight
from experiments.peers import __main__ as command_line
from experiments.peers import data, worker
from experiments.peers import page as pages
from experiments.peers.data import Failure, MethodTime, Task
from experiments.peers.launcher import square
from experiments.peers.methods import METHODS, TRUTH, Method
from gpu_kernels import build
from gpu_kernels.sweep import Launch

ONE = square("transpose_read_coalesced", 1024)
TWO = square("transpose_read_write_coalesced", 1024)
UNPROFILED = "ncu profiled 0 launches of the kernels, not 22 in their order"


def _method(**settings: Any) -> Method:
    return Method("title", "text", lambda *_, **__: iter(()), settings=settings)


def _time(method: str, one: Launch, us: float, process: int = 0, **more: Any) -> MethodTime:
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
        return [_time(task.method, ONE, 1.0, task.process)]

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


#: Two processes each; NVBench's `seconds` come from a process with its defaults.
TIMES = [
    *(_time(TRUTH, one, us, process) for one in (ONE, TWO) for process, us in enumerate((9.9, 10.1))),
    *(_time("suite", one, us, process) for one in (ONE, TWO) for process, us in enumerate((10.0, 12.0))),
    _time("nvbench_cold", TWO, 12.5),
    _time("nvbench_cold", TWO, 12.4, seconds=4.0, defaults=True),
]
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
OVERVIEW = ["method", "processes", "bias at 1024², %", "spread, median, %", "largest, %", "start, s", "measure, s"]
OVERVIEW += ["seconds a configuration"]
FAILURES = [Failure("cupyx", process, "ModuleNotFoundError: No module named 'cupy'") for process in range(2)]
RUN = data.Run(FACTS, TIMES, FAILURES)


@pytest.mark.parametrize(
    ("title", "own", "truth", "value"),
    [
        ("Medians, µs", [10.0, 12.0], [], 11.0),
        ("Medians, µs", [], [10.0], None),
        ("Bias, µs", [10.0, 12.0], [9.9, 10.1], 1.0),
        ("Bias, µs", [12.5], [9.9, 10.1], 2.5),
        ("Bias, µs", [12.5], [], None),
        ("Bias, %", [10.0], [10.0], 0.0),
        ("Bias, %", [12.5], [9.9, 10.1], 0.25),
        ("Bias, %", [], [10.0], None),
        ("Spread over processes, (largest - smallest) / median, %", [10.0, 12.0], [], 2 / 11),
        ("Spread over processes, (largest - smallest) / median, %", [12.5], [10.0], None),
        ("Relative standard deviation between processes, %", [10.0, 12.0], [], 2**0.5 / 11),
        ("Relative standard deviation between processes, %", [12.5], [], None),
    ],
)
def test_figures(title: str, own: list[float], truth: list[float], value: float | None) -> None:
    """Bias against Nsight Compute, spread over processes; nothing where there are too few."""
    figure, _, _ = pages.DETAILS[title]
    assert figure(own, truth) == (None if value is None else pytest.approx(value))


def test_seconds() -> None:
    """Of fresh processes where users start them; of the method's defaults where its settings bound it."""
    assert pages.seconds_more(RUN, "suite") == pytest.approx(2 * (0.25 + 0.5))
    assert pages.seconds_more(RUN, "nvbench_cold") == pytest.approx(4.0)
    assert pages.seconds_more(data.Run(FACTS, TIMES[-2:-1], []), "nvbench_cold") is None


def test_costed() -> None:
    """The last kernel, at the sides that do not take too long; at all that there are where there are none of those."""
    sides = [256, *pages.COSTED_SIDES, 12800]
    both = [square(one.kernel, side) for side in sides for one in (ONE, TWO)]
    assert pages.costed(both) == [square(TWO.kernel, side) for side in pages.COSTED_SIDES]
    assert pages.costed(both[:2]) == [square(TWO.kernel, 256)]


def test_without_truth() -> None:
    """Where Nsight Compute did not run, the times are shown all the same."""
    run = data.Run(FACTS, [_time("suite", ONE, 10.0)], [Failure(TRUTH, 0, "ncu is not on PATH")])
    text = pages.page(run)
    assert "- Nsight Compute, 1 process: `ncu is not on PATH`" in text
    assert [cell.strip() for cell in text.split("## Medians")[1].splitlines()[4].split("|")[1:-1]] == [
        "this suite, back to back",
        "10",
    ]


def test_with_nothing_measured() -> None:
    """The reasons are all there is."""
    assert "cupyx.profiler.benchmark, 2 processes" in pages.page(data.Run(FACTS, [], FAILURES))


def test_rendering(tmp_path: Path) -> None:
    """`--render` turns the kept data into tables; every cell of the overview is as computed."""
    kept, file = tmp_path / "peers.jsonl", tmp_path / "peers.md"
    lines = [FACTS, *map(asdict, TIMES), *map(asdict, FAILURES)]
    kept.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert data.read(kept) == RUN
    assert command_line.main(["--out", str(kept), "--render", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert rows[:4] == [
        OVERVIEW,
        ["Nsight Compute", "2", "truth", "2.00", "2.00", "0.25", "0.50", "0.50"],
        ["this suite, back to back", "2", "+10.0", "18.18", "18.18", "0.25", "0.50", "1.50"],
        ["NVBench, cold", "1", "+25.0", "–", "–", "0.25", "4.00", "4.00"],
    ]
    assert "A GPU (GPU-1), driver 1.2, nvcc 3.4, commit abc, 2026-01-02; cuda-bench 0.3.0." in text
    assert "- cupyx.profiler.benchmark, 2 processes: `ModuleNotFoundError: No module named 'cupy'`" in text
    assert 'In the rounds: `options=["--timeout", "2"]`; in the seconds: its defaults.' in text


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
