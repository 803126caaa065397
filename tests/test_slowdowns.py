"""Slowdowns made on purpose: how they are made, and what the review says of them."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import axes
from benchmarks.instruments import machine
from benchmarks.instruments.replay import Cycle
from experiments import scaled, slowdowns
from report.compare.noise import Noise
from report.compare.verdict import Verdict
from report.results import ROOT
from tests.stored import samples


@pytest.mark.parametrize(("every", "percent"), [(0, 0), (50, 2), (20, 5), (10, 10)])
@pytest.mark.parametrize("turn", [1, 7, 1440])
def test_slowed(every: int, percent: int, turn: int) -> None:
    """A turn holds exactly so many launches more, and the extra ones are far from their neighbours in turn."""
    made: list[int] = []
    cycle = slowdowns.slowed(Cycle(lambda index, _: made.append(index), turn, None), every)
    for index in range(cycle.length):
        cycle.enqueue(index, None)
    assert len(made) == cycle.length * (100 + percent) / 100
    assert cycle.length % slowdowns.TURN == 0
    assert 0 <= cycle.length - turn < slowdowns.TURN
    extra = Counter(made) - Counter(range(cycle.length))
    assert sum(extra.values()) == cycle.length * percent / 100
    for before, index in itertools.pairwise(made):
        assert index - before in (1, turn // 2, 1 - turn // 2)


def test_scaled() -> None:
    """A configuration whose processes agree shows its 2 % in every pair of runs, one whose processes do not in none."""
    found = {
        name: [tuple(samples(1e-3 * (1 + spread * (process < 4)), 10, seed=process)) for process in range(8)]
        for name, spread in (("steady", 0.0), ("restless", 0.03))
    }
    pairs, unseen = scaled.missed(found, Noise())
    assert (pairs, unseen) == (12, Counter(steady=0, restless=12))


NAME = "time_transpose.Transpose.time_back_to_back(transpose_read_coalesced, 4096x4096, float32, -Xptxas -O3)"
TITLE = "`Transpose(transpose_read_coalesced, 4096x4096)`"


def _found(slower: dict[str, float], seconds: float) -> slowdowns.Samples:
    return {
        (variant, NAME): samples(seconds * slower.get(variant, 1.0), count=24, noise=0.0005, seed=seed)
        for seed, variant in enumerate(slowdowns.VARIANTS)
    }


@pytest.mark.parametrize(
    ("slower", "seconds", "wrong"),
    [
        ({"2 %": 1.02, "5 %": 1.05, "10 %": 1.1}, 1e-4, []),
        ({"5 %": 1.05, "10 %": 1.1}, 1e-4, ["2 %"]),
        ({"original again": 1.03, "2 %": 1.02, "5 %": 1.05, "10 %": 1.1}, 1e-4, ["original again"]),
        ({"original again": 0.97, "2 %": 1.02, "5 %": 1.05, "10 %": 1.1}, 1e-4, ["original again"]),
        ({"2 %": 0.97, "5 %": 1.05, "10 %": 1.1}, 1e-4, ["2 %"]),
        ({"10 %": 1.1}, 2e-6, []),
    ],
)
def test_judged(slower: dict[str, float], seconds: float, wrong: list[str], tmp_path: Path) -> None:
    """Caught, missed, cried wolf: each is told; below 20 µs a miss is no error."""
    found = _found(slower, seconds)
    judged = slowdowns.judge(found, Noise(tmp_path))
    assert [each.split(" of ")[0] for each in slowdowns.wrongly_judged(found, judged)] == wrong
    text = slowdowns.table(found, judged)
    assert text.count("SLOW") == sum(each.verdict is Verdict.SLOW for each in judged.values())
    assert TITLE in text


def test_kept_and_rendered(tmp_path: Path) -> None:
    """What was measured is judged again from what is kept, with what was missed on the page."""
    data, page = tmp_path / "slowdowns.jsonl", tmp_path / "slowdowns.md"
    found = _found({"5 %": 1.05, "10 %": 1.1}, 1e-4)
    known = {
        "machine": "nowhere",
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "abc",
        "gpu": "GPU X",
        "uuid": "GPU-1",
    }
    known |= {"driver": "1.2", "nvcc": "13"}
    slowdowns.write(data, known, found)
    assert slowdowns.read(data) == (known, found)
    assert slowdowns.main(["--data", str(data), "--render", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert "GPU X (GPU-1), driver 1.2, nvcc 13, commit abc, 2026-01-02, float32" in text
    assert f"4 comparisons at 20 µs and above, 1 wrong: 2 % of {TITLE}." in text
    assert f"Not caught, of any length: 2 % of {TITLE}." in text
    assert "Not measured: `Transpose(transpose_read_coalesced, 256x256)`, " in text


def test_every_kernel_is_slowed() -> None:
    """Each kernel of the suite is among the cases, under names that the review knows."""
    known = {entry.configuration for entry in Noise(ROOT / "results" / "nvidia-h200").entries()}
    assert slowdowns.CASES.keys() <= known
    slowed = {name.partition("(")[2].split(",")[0].split(" ")[0] for name in slowdowns.CASES}
    assert slowed >= set(axes.KERNELS)


def _process(name: str, every: int, _: Path) -> list[float]:
    """In place of a measurement: who and what."""
    return [os.getpid(), len(name), every]


def test_every_case_has_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the suite, since what a process did before changes its times: one a round, variant and case."""
    cases = dict(list(slowdowns.CASES.items())[3:5])
    monkeypatch.setattr(slowdowns, "CASES", cases)
    monkeypatch.setattr(slowdowns, "measure", _process)
    found = slowdowns.run()
    assert list(found) == list(itertools.product(slowdowns.VARIANTS, cases))
    for (variant, name), taken in found.items():
        assert taken[1:3] == taken[4:6] == [len(name), slowdowns.VARIANTS[variant]]
    processes = [process for taken in found.values() for process in taken[::3]]
    assert len(set(processes) - {os.getpid()}) == len(processes) == slowdowns.ROUNDS * len(found)


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to slow down is said, and is no success."""
    nothing: Any = None
    monkeypatch.setattr(machine, "gpu", lambda: nothing)
    assert slowdowns.main([]) == 2
    assert "no GPU here" in capsys.readouterr().err
