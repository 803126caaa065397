"""The comparison with other tools: its processes, what they print, and the tables made of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.instruments import machine
from experiments.peers import __main__ as command_line
from experiments.peers import data, nsight, results, rounds, table
from experiments.peers.configurations import KERNELS, Configuration, all_of
from experiments.peers.data import Failure, Reading
from experiments.peers.methods import METHODS, TRUTH, Method
from experiments.peers.rounds import Task
from experiments.peers.summary import Summary

ONE = Configuration("transpose_read_coalesced", 1024)
TWO = Configuration("transpose_read_write_coalesced", 1024)


def _method(**settings: Any) -> Method:
    return Method("title", "text", lambda *_, **__: iter(()), settings=settings)


def test_schedule() -> None:
    """Round by round; after the first, what the defaults of those cost that are bounded."""
    methods = {"a": _method(), "b": _method(n_repeat=1)}
    expected = ["a, process 0", "b, process 0", "b, defaults", "a, process 1", "b, process 1"]
    assert list(map(str, rounds.schedule(methods, 2))) == expected


@pytest.mark.parametrize(
    ("budget", "useless", "started", "left_out"),
    [
        (100, "", ["a0", "b0", "a1", "b1", "a2", "b2"], []),
        (21, "", ["a0", "b0", "a1"], ["b1", "a2", "b2"]),
        (0, "", [], ["a0", "b0", "a1", "b1", "a2", "b2"]),
        (100, "b", ["a0", "b0", "a1", "b1", "a2"], []),
    ],
)
def test_budget(budget: float, useless: str, started: list[str], left_out: list[str]) -> None:
    """What would not fit is left out and named; what measures nothing twice is given up. `a` takes 5 s, `b` 10 s."""
    now = 0.0
    done = []

    def start(task: Task) -> bool:
        nonlocal now
        now += {"a": 5, "b": 10}[task.method]
        done.append(f"{task.method}{task.process}")
        return task.method != useless

    tasks = rounds.schedule({"a": _method(), "b": _method()}, 3)
    left = rounds.run(tasks, start, lambda: now, budget, lambda _: None)
    assert done == started
    assert [f"{task.method}{task.process}" for task in left] == left_out


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
    assert rounds.attend([sys.executable, "-c", program], 2) == (lines, problem)
    assert time.perf_counter() - begin < 20


def _csv(kernels: list[str], nanoseconds: float = 3000, unit: str = "ns") -> list[str]:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"{index}","{kernel}","{nsight.METRIC}","{unit}","{nanoseconds + index:,}"'
        for index, kernel in enumerate(kernels)
    ]
    return ["==PROF== Connected to process 1", "what the process says", head, *rows]


def _launched(*configurations: Configuration) -> list[str]:
    return [one.kernel for one in configurations for _ in range(nsight.LAUNCHES + 1)]


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
    """Durations are never given to the wrong configuration, nor in the wrong unit."""
    with pytest.raises(ValueError, match=message):
        nsight.durations(lines, [ONE.kernel, TWO.kernel])


def test_nsight_version(tmp_path: Path) -> None:
    """As ncu writes it."""
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\necho 'Version 2025.3.1.0 (build 36398880)'\n")
    ncu.chmod(0o755)
    assert nsight.version(str(ncu)) == "2025.3.1.0"


def _line(configuration: Configuration, *samples: float) -> str:
    where = {"kernel": configuration.kernel, "side": configuration.side}
    return json.dumps({**where, "samples": samples, "seconds": 0.5, "start": 0.25, "cubin": "c0de"})


def _reading(method: str, one: Configuration, us: float, process: int = 0, **more: Any) -> Reading:
    rest = {"samples": 1, "seconds": 0.5, "start": 0.25, "cubin": "c0de", **more}
    return Reading(method, process, one.kernel, one.side, us, **rest)


@pytest.mark.parametrize(
    ("method", "lines", "problem", "us", "error"),
    [
        ("suite", [_line(ONE, 1e-6, 3e-6, 2e-6), _line(TWO, 5e-6)], None, [2, 5], None),
        ("suite", [_line(ONE, 1e-6), '{"error": "A:\\n b"}'], "exit code 1: B", [1], "A: b"),
        ("suite", [_line(ONE, 1e-6), '{"kernel": "cut o'], "took longer than 2 s", [1], "took longer than 2 s"),
        ("suite", [], None, [], "0 of 2 configurations measured"),
        (TRUTH, [_line(ONE), _line(TWO), *_csv(_launched(ONE, TWO), 999)], None, [1.0045, 1.0155], None),
        (TRUTH, [_line(ONE), _line(TWO)], None, [], "ncu profiled 0 launches of the kernels, not 22 in their order"),
    ],
)
def test_entries(method: str, lines: list[str], problem: str | None, us: list[float], error: str | None) -> None:
    """Medians in microseconds of what was measured, and one reason for what was not."""
    found = list(results.entries(Task(method, 7), lines, problem, [ONE, TWO]))
    assert [entry.us for entry in found if isinstance(entry, Reading)] == pytest.approx(us)
    assert [entry.error for entry in found if isinstance(entry, Failure)] == ([error] if error else [])
    assert all((entry.method, entry.process) == (method, 7) for entry in found)


#: Two processes each; NVBench's `seconds` come from a process with its defaults.
READINGS = [
    *(_reading(TRUTH, one, us, process) for one in (ONE, TWO) for process, us in enumerate((9.9, 10.1))),
    *(_reading("suite", one, us, process) for one in (ONE, TWO) for process, us in enumerate((10.0, 12.0))),
    _reading("nvbench_cold", TWO, 12.5),
    _reading("nvbench_cold", TWO, 12.4, seconds=4.0, defaults=True),
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
RUN = data.Run(FACTS, READINGS, FAILURES)


@pytest.mark.parametrize(
    ("figure", "method", "one", "value"),
    [
        (Summary.median, "suite", ONE, 11.0),
        (Summary.median, "nvbench_cold", ONE, None),
        (Summary.bias, "suite", ONE, 1.0),
        (Summary.bias, "nvbench_cold", TWO, 2.5),
        (Summary.relative_bias, TRUTH, TWO, 0.0),
        (Summary.relative_bias, "nvbench_cold", TWO, 0.25),
        (Summary.spread, "suite", ONE, 2 / 11),
        (Summary.spread, "nvbench_cold", TWO, None),
        (Summary.deviation, "suite", ONE, 2**0.5 / 11),
        (lambda summary, method, _: summary.seconds(method), "suite", ONE, 2 * (0.25 + 0.5)),
        (lambda summary, method, _: summary.seconds(method), "nvbench_cold", ONE, 4.0),
    ],
)
def test_figures(figure: Callable[..., float | None], method: str, one: Configuration, value: float | None) -> None:
    """Bias against Nsight Compute, spread over processes, seconds with the defaults."""
    assert figure(Summary(RUN), method, one) == (None if value is None else pytest.approx(value))


def test_without_truth() -> None:
    """Where Nsight Compute did not run, the times are shown all the same."""
    run = data.Run(FACTS, [_reading("suite", ONE, 10.0)], [Failure(TRUTH, 0, "ncu is not on PATH")])
    assert Summary(run).bias("suite", ONE) is None
    text = table.render(run)
    assert "- Nsight Compute, 1 process: `ncu is not on PATH`" in text
    assert [cell.strip() for cell in text.split("## Medians")[1].splitlines()[4].split("|")[1:-1]] == [
        "this suite, back to back",
        "10",
    ]


def test_with_nothing_measured() -> None:
    """The reasons are all there is."""
    assert "cupyx.profiler.benchmark, 2 processes" in table.render(data.Run(FACTS, [], FAILURES))


def test_rendering(tmp_path: Path) -> None:
    """`--render` turns the kept data into tables; every cell of the overview is as computed."""
    kept, page = tmp_path / "peers.jsonl", tmp_path / "peers.md"
    kept.write_text("".join([data.line(FACTS), *map(data.line, READINGS), *map(data.line, FAILURES)]), encoding="utf-8")
    assert data.read(kept) == RUN
    assert command_line.main(["--out", str(kept), "--render", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
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
        (["--kernels", "nope"], "kernel 'nope' is not known"),
        (["--methods", "suite,nope"], "'nope'"),
        (["--sides", "256,x"], "invalid literal for int"),
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
    assert Summary(RUN).costed == [TWO]
    assert all_of(KERNELS, [1, 2])[:4] == [*(Configuration(name, 1) for name in KERNELS), Configuration(KERNELS[0], 2)]
