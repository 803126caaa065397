"""Two runs of one commit on one H200, one after the other (tests/data/two-runs-h200): what the review makes of them.

Measured on 2026-11-22 by `asv run --record-samples --bench time_ --bench track_control 98a96e0^!`, twice (driver
580.159.04, nvcc 13.0.88). They are judged by the thresholds that hold where none are known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from asv.config import Config

from kernelwatch.project import ROOT
from kernelwatch.review import timed
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.noise import LONG, default
from kernelwatch.store.results import History, Point

KEPT = Path(__file__).parents[2] / "data" / "two-runs-h200"

#: Two of its processes differ by 11 and 14 %: no tool could tell.
RESTLESS = [
    f"time_transpose.Transpose.time_back_to_back(transpose_read_coalesced, 256x256, int8, -Xptxas {flag})"
    for flag in ("-O3", "-dlcm=cg")
]


def _points(run: str) -> dict[str, Point]:
    """All times of a run, by configuration."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(KEPT / run / "results")
    history = History("nvidia-h200", config=config)
    results = history.commit("98a96e0")
    assert results is not None
    return {point.name(name): point for name in history.benchmarks("time") for point in history.points(results, name)}


@pytest.fixture(scope="module")
def runs() -> tuple[dict[str, Point], dict[str, Point]]:
    """Both."""
    return _points("first"), _points("second")


def _verdicts(base: dict[str, Point], head: dict[str, Point]) -> dict[str, Verdict]:
    pairs = {name: (base[name], head[name]) for name in base}
    thresholds = [default(one.value or 0.0) for one, _ in pairs.values()]
    judged = timed.judge(list(pairs.values()), thresholds)
    return dict(zip(pairs, (each.verdict for each in judged), strict=True))


def test_nothing_is_flagged(runs: tuple[dict[str, Point], dict[str, Point]]) -> None:
    """Of 669 times, two are left open."""
    base, head = runs
    assert (len(base), base.keys()) == (669, head.keys())
    found = _verdicts(base, head)
    assert [name for name, verdict in found.items() if verdict is not Verdict.SAME] == RESTLESS
    assert {found[name] for name in RESTLESS} == {Verdict.UNDECIDED}


def test_a_slowdown_is_flagged(runs: tuple[dict[str, Point], dict[str, Point]]) -> None:
    """Times of 20 µs and above that grow by 2 % are, all of them."""
    base, head = ({name: point for name, point in run.items() if (runs[0][name].value or 0) >= LONG} for run in runs)
    slower = {
        name: replace(point, value=1.02 * (point.value or 0), samples=tuple(1.02 * sample for sample in point.samples))
        for name, point in head.items()
    }
    assert len(base) == 466
    assert set(_verdicts(base, slower).values()) == {Verdict.SLOWER}
