"""Slowdowns made on purpose: how they are made, and what the review says of them."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments import facts, pages, slowdowns
from experiments.cases import sweeps
from gpu_kernels import KERNELS
from gpu_kernels.sweep import Launch
from kernelwatch.asv import suite
from kernelwatch.instrument import machine, measuring
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.noise import Noise
from tests.stored import samples

NAME = "time_transpose.Transpose.time_back_to_back(transpose_read_coalesced, 4096x4096, float32, -Xptxas -O3)"
TITLE = "`Transpose(transpose_read_coalesced, 4096x4096)`"


def _found(slower: dict[str, float], seconds: float) -> slowdowns.Times:
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


FACTS = {
    "machine": "nowhere",
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "abc",
    "gpu": "GPU X",
    "uuid": "GPU-1",
    "driver": "1.2",
    "nvcc": "13",
}


def test_kept_and_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured is kept, and judged again from what is kept, with what was missed on the page."""
    data, page = tmp_path / "slowdowns.jsonl", tmp_path / "slowdowns.md"
    found = _found({"5 %": 1.05, "10 %": 1.1}, 1e-4)
    monkeypatch.setattr(machine, "gpu", lambda: "a GPU")
    monkeypatch.setattr(facts, "now", lambda _: FACTS)
    monkeypatch.setattr(slowdowns, "run", lambda launches: found if NAME in launches else {})
    assert slowdowns.main(["--data", str(data)]) == 1
    printed = capsys.readouterr()
    assert slowdowns.read(data) == (FACTS, found)
    assert "not measured: `" in printed.err
    assert "`Transpose(transpose_read_coalesced, 256x256)`, " in printed.err
    assert slowdowns.main(["--data", str(data), "--render", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert text == printed.out
    assert "GPU X (GPU-1), driver 1.2, nvcc 13, commit abc, 2026-01-02, float32" in text
    assert f"4 comparisons at 20 µs and above, 1 wrong: 2 % of {TITLE}." in text
    assert f"Not caught, of any length: 2 % of {TITLE}." in text


def test_cases() -> None:
    """Every kernel is slowed, matrices at several sizes; what was kept is found under the names that it has."""
    cases = slowdowns.cases()
    assert {launch.kernel for launch in cases.values()} == set(KERNELS) - {"transpose_serial"}, "timed in the L2 alone"
    assert {name for _, name in slowdowns.read(pages.EVIDENCE / "slowdowns.jsonl")[1]} <= cases.keys()
    assert {launch.flags for launch in cases.values()} == {"-Xptxas -O3"}
    without = {suite.time(sweep) for sweep in sweeps() if "float32" not in sweep.axes["dtype"]}
    assert all((launch.dtype == "float32") != (name.partition("(")[0] in without) for name, launch in cases.items())
    sides = {
        max(each.arguments["rows"], each.arguments["columns"]) for each in cases.values() if "rows" in each.arguments
    }
    assert max(sides) == slowdowns.SIDE
    assert len(sides) > 2
    assert cases[NAME] == Launch("transpose_read_coalesced", arguments={"rows": 4096, "columns": 4096})


def test_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variant of every case is measured once a round, the rounds and variants one after another."""
    launches = dict(list(slowdowns.cases().items())[3:5])
    asked: list[tuple[Launch, int]] = []

    def measured(launch: Launch, *, every: int) -> SimpleNamespace:
        asked.append((launch, every))
        return SimpleNamespace(samples=(len(asked), every))

    monkeypatch.setattr(slowdowns, "measured", measured)
    monkeypatch.setattr(measuring, "running", nullcontext)
    found = slowdowns.run(launches)
    order = list(itertools.product(slowdowns.VARIANTS.values(), launches.values()))
    assert asked == [(launch, every) for every, launch in order] * slowdowns.ROUNDS
    assert list(found) == list(itertools.product(slowdowns.VARIANTS, launches))
    first = found["2 %", list(launches)[1]]
    assert first == [6, 50, 6 + len(order), 50]


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to slow down is said, and is no success."""
    nothing: Any = None
    monkeypatch.setattr(machine, "gpu", lambda: nothing)
    assert slowdowns.main([]) == 2
    assert "no GPU here" in capsys.readouterr().err
