"""The noise of a machine, from runs that differ in nothing."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch.instrument import machine
from kernelwatch.instrument.alone import SAMPLES
from kernelwatch.review import commands, selftest
from kernelwatch.review.selftest import Processes
from kernelwatch.review.verdict import Verdict
from kernelwatch.runner import command
from kernelwatch.store.noise import FILE, Gpus, Noise
from tests.stored import BASE, HEAD, Suite, samples, write

NAMES = [f"time_x.X.time_back_to_back({number})" for number in range(300)]


def _processes(count: int, between: float, seconds: float = 1e-4, seed: int = 0) -> list[tuple[float, ...]]:
    """Processes whose medians scatter by a relative standard deviation."""
    scatter = np.random.default_rng(seed).normal(0, between, count)
    return [tuple(samples(seconds * (1 + each), count=12, seed=seed + n)) for n, each in enumerate(scatter)]


def test_entry() -> None:
    """The formula of its docstring, on numbers whose spread is known: medians 99, 100, 101, 100 µs; or none."""
    found = selftest.entry("x", [(99e-6,) * 3, (100e-6,) * 3, (101e-6,) * 3, (99e-6, 100e-6, 101e-6)])
    assert found.between == pytest.approx(math.sqrt(2 / 3) / 100)
    assert found.threshold == pytest.approx(5.8409 * math.sqrt(2 / 3) / 100, rel=1e-4)
    assert (found.seconds, found.processes) == (100e-6, 4)
    assert found.within == pytest.approx(0.0)
    assert selftest.entry("x", [(1e-4,) * 9] * 4).threshold == selftest.LEAST


def test_processes_that_agree_by_luck() -> None:
    """A configuration scatters no less than those do in the median that take as long; one process tells nothing."""
    found: Processes = {name: _processes(4, 0.01, seed=9 * number) for number, name in enumerate(NAMES[:3])}
    found |= {"lucky": [(1e-4,) * 9] * 2, "short": [(1e-6,) * 9] * 4, "alone": [(1e-4,) * 9]}
    thresholds = {each.configuration: each.threshold for each in selftest.entries(found)}
    assert thresholds.keys() == found.keys() - {"alone"}
    usual = np.median([0.0, *(selftest.entry(name, found[name]).between for name in NAMES[:3])])
    assert thresholds["lucky"] == pytest.approx(63.657 * usual, rel=1e-4)
    assert thresholds["short"] == selftest.LEAST


@pytest.mark.parametrize("between", [0.0002, 0.003, 0.02])
def test_one_in_a_hundred(between: float) -> None:
    """Of two-process medians drawn anew, about 1 % differ by more than the threshold of four processes said."""
    beyond = 0
    least = 0 if between < selftest.LEAST else 3  # below it, LEAST is the threshold
    for seed in range(1000):
        threshold = selftest.entry("x", _processes(4, between, seed=10 * seed)).threshold
        base, head = (
            np.mean([np.median(each) for each in _processes(2, between, seed=10**6 + 10 * seed + k)]) for k in (0, 5)
        )
        beyond += bool(abs(head / base - 1) > threshold)
    assert least <= beyond <= 30


def _found(count: int, slow: dict[str, int] | None = None) -> Processes:
    """Steady configurations; of those named in `slow`, every so many processes is 5 % slower."""
    found: Processes = {name: _processes(count, 0.0002, seed=9 * number) for number, name in enumerate(NAMES[:5])}
    for name, every in (slow or {}).items():
        found[name] = [
            tuple(sample * (1.05 if index % every == 1 else 1) for sample in samples)
            for index, samples in enumerate(found[name])
        ]
    return found


def test_nothing_is_flagged() -> None:
    """Nothing changed: by the default thresholds, no configuration is SLOW or FAST in six repetitions."""
    found: Processes = {name: _processes(8, 0.001, seed=9 * number) for number, name in enumerate(NAMES)}
    judged = list(selftest.repetitions(found, Noise()))
    assert [len(each) for each in judged] == [len(NAMES)] * 6
    assert selftest.flagged(judged) == 0


@pytest.mark.parametrize(("count", "comparisons"), [(4, 1), (8, 6)])
def test_what_differs_is_flagged(count: int, comparisons: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration of which one run's processes are all 5 % slower is named, and the thresholds cannot excuse it."""
    found = _found(count, slow={NAMES[2]: count // selftest.ROUNDS})
    judged = list(selftest.repetitions(found, Noise()))
    assert len(judged) == comparisons
    assert selftest.flagged(judged) == 1
    *lines, total = capsys.readouterr().out.splitlines()
    assert len(lines) == count // selftest.ROUNDS - 1
    assert total.startswith(f"{len(lines)} of {5 * comparisons} flagged, ")
    assert all(line.startswith(f"flagged: {NAMES[2]}, ") for line in lines)


def test_one_slow_process_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A single process that differs makes its run UNDECIDED, not SLOW."""
    found = _found(4)
    found[NAMES[0]][1] = tuple(1.05 * sample for sample in found[NAMES[0]][1])
    (judged,) = selftest.repetitions(found, Noise())
    assert judged[NAMES[0]].verdict is Verdict.UNDECIDED
    assert (selftest.flagged([judged]), capsys.readouterr().out) == (0, "0 of 5 flagged, 1 undecided\n")


def test_stored_thresholds_hold(tmp_path: Path) -> None:
    """Whatever these processes say; a configuration that lost a process is left out."""
    found = _found(4, slow={NAMES[2]: 2}) | {"short": [(1.0,) * 10] * 3}
    (tmp_path / FILE).write_text(json.dumps({"configuration": NAMES[2], "threshold": 0.06}) + "\n")
    (judged,) = selftest.repetitions(found, Noise(tmp_path))
    assert set(judged) == set(NAMES[:5])
    assert judged[NAMES[2]].verdict is Verdict.SAME


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """What a run of four processes left, and one on another GPU that only counted: results, records of the runs."""
    taken = [sample for process in _processes(4, 0.0002) for sample in process[:SAMPLES]]
    root = write(tmp_path, {BASE: {NAMES[0].partition("(")[0]: {"one": taken, "two": None}}}, machine="gpu-x")
    times = [("2026-01-02", "2126-01-02", "1.2", "u"), ("2127-01-02", "2127-01-02", "1.3", "v")]
    lines = [
        {"commits": [BASE], "gpu": "GPU X", "before": {"driver": driver, "uuid": uuid}}
        | {"started": f"{started}T03:04:05+00:00", "ended": f"{ended}T03:05:05+00:00"}
        for started, ended, driver, uuid in times
    ]
    (root / "results" / "gpu-x" / "runs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return root / "results"


@pytest.fixture
def project(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the thresholds are kept."""
    found = tmp_path / "project"
    found.mkdir()
    (found / "asv.conf.json").write_text((measured.parent / "asv.conf.json").read_text())
    monkeypatch.setattr(selftest, "ROOT", found)
    return found


@pytest.mark.parametrize("keep", [True, False])
def test_conclude(measured: Path, keep: bool, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thresholds are written beside the machine's results with the facts of the run; with --bench they are not."""
    assert selftest.conclude(measured, BASE, keep=keep) == 0
    assert "1 times, 0 of them too noisy; 1 comparisons of two runs of 2 processes" in capsys.readouterr().out
    noise = Noise(project / "results-local" / "gpu-x")
    assert [(entry.configuration, entry.processes) for entry in noise.entries()] == (
        [("time_x.X.time_back_to_back(one)", 4)] if keep else []
    )
    facts = {"commit": BASE, "date": "2026-01-02T03:04:05+00:00", "gpu": "GPU X", "driver": "1.2", "uuid": "u"}
    assert noise.selftest == ({**facts, "processes": 4} if keep else {})


@pytest.mark.parametrize(("uuid", "flagged"), [("u", False), ("v", True), (None, True)])
def test_thresholds_of_the_same_gpu(
    measured: Path, uuid: str | None, flagged: bool, project: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The runs are judged by thresholds that the same GPU gave, else by the defaults."""
    monkeypatch.setattr(
        selftest, "collect", lambda *_: {"time_x.X.time_back_to_back(one)": _found(4, {NAMES[0]: 2})[NAMES[0]]}
    )
    folder = project / "results-local" / "gpu-x"
    folder.mkdir(parents=True)
    facts = {"uuid": uuid, "processes": 8}
    line = {"configuration": "time_x.X.time_back_to_back(one)", "threshold": 0.06}
    (folder / FILE).write_text(f"{json.dumps({'selftest': facts})}\n{json.dumps(line)}\n")
    assert selftest.conclude(measured, BASE, keep=True) == flagged
    said = capsys.readouterr().out
    assert f"replaced: thresholds of {facts}" in said
    assert f"{int(flagged)} of 1 flagged" in said


@pytest.mark.parametrize(
    ("suite", "machine_name", "message"),
    [
        ({BASE: {"time_x.X.time_back_to_back": {"one": [1.0] * 25}}}, "gpu", "has 25 samples, not 20 of its processes"),
        ({BASE: {"time_x.X.time_back_to_back": {"one": 1.0}}}, "gpu", "gpu has samples of 0 processes"),
        ({HEAD: {"time_x.X.time_back_to_back": {"one": [1.0] * 40}}}, "gpu", "gpu has samples of 0 processes"),
        ({BASE: {"time_x.X.time_back_to_back": {"one": [1.0] * 30}}}, "gpu", "of 3 processes a configuration of bbbb"),
        ({BASE: {"time_x.X.time_back_to_back": {"one": [1.0] * 20}}}, "no-gpu-x", "0 machines with a GPU, not of one"),
    ],
)
def test_bad_results(
    suite: Suite, machine_name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be judged is said, and is no success."""
    root = write(tmp_path, suite, machine=machine_name)
    assert selftest.conclude(root / "results", BASE, keep=False) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("benchmarks", [["time_"], ["x", "y"]])
def test_rounds(benchmarks: list[str]) -> None:
    """One run of asv, its samples kept, as many processes a configuration as asked for."""
    words = command.words_of_rounds("c0ffee", benchmarks, 6)
    assert words[:2] == ["run", "--record-samples"]
    assert words[words.index("--attribute") + 1] == "rounds=6"
    assert [word for before, word in itertools.pairwise(words) if before == "--bench"] == benchmarks
    assert words[-1] == "c0ffee^!"


@pytest.mark.parametrize("count", "325")
def test_bad_input(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Too few processes are refused before anything is measured."""
    with pytest.raises(SystemExit):
        commands.selftest(["--processes", count])
    assert f"--processes is {count}; 2 make a run, and two runs are the least" in capsys.readouterr().err


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(("words", "keep"), [([], True), (["--bench", "x"], False)])
def test_what_is_kept(words: list[str], keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a run of all times replaces the thresholds, all of them."""
    ran: list[Any] = []
    monkeypatch.setattr(machine, "gpu", lambda: "a GPU")
    monkeypatch.setattr(command, "rounds", lambda *given: ran.append(given[2:]))
    monkeypatch.setattr(selftest, "conclude", lambda results, commit, *, keep: 7 if keep else 8)
    assert commands.selftest(words) == (7 if keep else 8)
    assert ran == [(words[1:] or ["time_"], 4)]


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to measure is said, and is no success."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert commands.selftest([]) == 2
    assert "no GPU here" in capsys.readouterr().err


def test_thresholds_of_one_gpu(tmp_path: Path) -> None:
    """What one GPU's noise allows is too little between two of them; the five noisiest are named."""
    lines = [{"configuration": "quiet", "threshold": 0.002}, {"configuration": "loud", "threshold": 0.08}]
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    noise = Noise(tmp_path)
    assert [noise.threshold("quiet", 1e-3, gpus) for gpus in Gpus] == [0.002, 0.01, 0.08]
    assert [noise.threshold("loud", 1e-3, gpus) for gpus in Gpus] == [0.08, 0.08, 0.08]
    assert noise.threshold("quiet", 1e-6, Gpus.ALIKE) == 0.05
    assert list(noise.notes()) == [
        "too noisy here to judge, changes go unseen: loud up to 8%; judge these by their counted numbers"
    ]
    lines = [{"configuration": f"c{number}", "threshold": number / 100} for number in range(4, 14)]
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (note,) = Noise(tmp_path).notes()
    assert "c13 up to 13%, c12 up to 12%" in note
    assert note.endswith("c9 up to 9%, and 4 more; judge these by their counted numbers")
