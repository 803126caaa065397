"""The noise of a machine, from runs that differ in nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.instruments import machine
from report import selftest
from report.compare.noise import FILE, Noise
from report.compare.verdict import Verdict
from report.selftest import Processes
from tests.stored import BASE, samples, write

NAMES = [f"time_x.X.time_back_to_back({number})" for number in range(300)]


def _processes(count: int, between: float, seconds: float = 1e-4, seed: int = 0) -> list[tuple[float, ...]]:
    """Processes whose medians scatter by a relative standard deviation."""
    scatter = np.random.default_rng(seed).normal(0, between, count)
    return [tuple(samples(seconds * (1 + each), count=12, seed=seed + n)) for n, each in enumerate(scatter)]


def test_entry() -> None:
    """The formula of its docstring, on numbers whose spread is known: medians 99, 100, 101, 100 µs."""
    found = selftest.entry("x", [(99e-6,) * 3, (100e-6,) * 3, (101e-6,) * 3, (99e-6, 100e-6, 101e-6)])
    assert found.between == pytest.approx(math.sqrt(2 / 3) / 100)
    assert found.threshold == pytest.approx(5.8409 * math.sqrt(2 / 3) / 100, rel=1e-4)
    assert (found.seconds, found.processes) == (100e-6, 4)
    assert found.within == pytest.approx(0.0)


def test_least_threshold() -> None:
    """Processes that agree to the last digit do not make every change matter."""
    assert selftest.entry("x", [(1e-4,) * 9] * 4).threshold == selftest.LEAST


@pytest.mark.parametrize("between", [0.0002, 0.003, 0.02])
def test_one_in_a_hundred(between: float) -> None:
    """Of two-process medians drawn anew, about 1 % differ by more than the threshold of four processes said."""
    beyond = 0
    for seed in range(1000):
        threshold = selftest.entry("x", _processes(4, between, seed=10 * seed)).threshold
        base, head = (
            np.mean([np.median(each) for each in _processes(2, between, seed=10**6 + 10 * seed + k)]) for k in (0, 5)
        )
        beyond += bool(abs(head / base - 1) > threshold)
    assert beyond <= 30


def test_nothing_is_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three hundred configurations in which nothing changed: none is SLOW or FAST at its own threshold."""
    found: Processes = {name: _processes(4, 0.001, seed=9 * number) for number, name in enumerate(NAMES)}
    assert selftest.conclude(tmp_path, {"commit": "HEAD"}, found, keep=True) == 0
    assert "flagged:" not in capsys.readouterr().out
    noise = Noise(tmp_path)
    assert [entry.configuration for entry in noise.entries()] == NAMES
    assert noise.selftest == {"commit": "HEAD"}


def test_what_differs_is_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration whose every other process is 5 % slower is named; with --check, stored thresholds stay."""
    steady: Processes = {name: _processes(4, 0.0002, seed=number) for number, name in enumerate(NAMES[:5])}
    assert selftest.conclude(tmp_path, {}, steady, keep=True) == 0
    stored = (tmp_path / FILE).read_bytes()
    slow = [tuple(sample * (1 + 0.05 * (n % 2)) for sample in each) for n, each in enumerate(steady[NAMES[2]])]
    assert selftest.conclude(tmp_path, {}, steady | {NAMES[2]: slow}, keep=False) == 1
    assert f"flagged: {NAMES[2]}, 1.04" in capsys.readouterr().out
    assert (tmp_path / FILE).read_bytes() == stored


def test_judged_by_the_review() -> None:
    """The sides are every other pass; a difference between them that the thresholds allow is SAME."""
    noise = Noise(Path("nowhere"))
    found: Processes = {"x": [(1.0,) * 8, (1.004,) * 8, (1.0,) * 8, (1.004,) * 8], "alone": [(1.0,) * 8]}
    judged = selftest.judge(found, noise)
    assert set(judged) == {"x"}
    assert judged["x"].verdict is Verdict.SAME
    assert judged["x"].ratio == pytest.approx(1.004)


def test_collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass's samples are one process of each configuration."""
    folders = []
    for number in range(3):
        root = tmp_path / str(number)
        root.mkdir()
        taken = samples(1e-3 * (1 + number))
        folders.append(write(root, {BASE: {"time_x.X.time_back_to_back": {"one": taken, "two": None}}}) / "results")
    found = selftest.collect(folders, "gpu")
    (processes,) = found.values()
    assert [round(float(np.median(each)), 6) for each in processes] == [1e-3, 2e-3, 3e-3]


@pytest.mark.parametrize(("words", "message"), [(["--passes", "3"], "--passes is 3; at least 4 are needed, 2 a side")])
def test_bad_input(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Too few passes are refused before anything is measured."""
    with pytest.raises(SystemExit):
        selftest.main(words)
    assert message in capsys.readouterr().err


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to measure is said, and is no success."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    assert selftest.main([]) == 2
    assert "no GPU here" in capsys.readouterr().err


def test_thresholds_of_one_gpu(tmp_path: Path) -> None:
    """What one GPU's noise allows is too little between two of them; the too noisy are counted."""
    lines = [{"configuration": "quiet", "threshold": 0.002}, {"configuration": "loud", "threshold": 0.08}]
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    noise = Noise(tmp_path)
    assert [noise.threshold("quiet", 1e-3, one_gpu=same) for same in (True, False)] == [0.002, 0.01]
    assert [noise.threshold("loud", 1e-3, one_gpu=same) for same in (True, False)] == [0.08, 0.08]
    assert list(noise.notes()) == ["1 configurations are too noisy here to judge: changes of 5% or more go unseen"]
