"""Two GPUs of a kind: what did not change tells whether what did can be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from report.compare.evidence import Evidence
from report.compare.gpus import ALIKE, FEWEST, tell
from report.compare.noise import LONG, Gpus
from report.cubins import Cubins
from report.results import ROOT, History, Point
from tests.stored import reviewed

ONE, ALL_ALIKE, SEVERAL = Gpus.ONE, Gpus.ALIKE, Gpus.SEVERAL
X, Y = "time_x.X.time_back_to_back", "time_y.Y.time_back_to_back"


class _Evidence:
    """Which GPUs measured a benchmark; all machine code is unchanged but that of parameters called changed."""

    def __init__(self, **gpus: str) -> None:
        self._gpus = gpus

    def gpus(self, benchmark: str) -> frozenset[str | None]:
        return frozenset(None if each == "?" else each for each in self._gpus[benchmark[5]])

    def machine_code_unchanged(self, _: str, point: Point) -> bool | None:
        return {"same": True, "changed": False, "unknown": None}[point.params["code"]]


def _pairs(
    benchmark: str, count: int, change: float = 0.0, *, seconds: float = LONG, code: str = "same"
) -> list[tuple[str, Point, Point]]:
    base, head = (Point({"code": code}, value) for value in (seconds, seconds * (1 + change)))
    return [(benchmark, base, head)] * count


@pytest.mark.parametrize(
    ("gpus", "pairs", "expected"),
    [
        ({"x": "A"}, _pairs(X, 1, 0.5), {X: ONE}),
        ({"x": "?"}, _pairs(X, 1, 0.5), {X: ONE}),
        ({"x": "AB"}, _pairs(X, FEWEST, 0.9 * ALIKE), {X: ALL_ALIKE}),
        ({"x": "AB"}, _pairs(X, FEWEST, -0.9 * ALIKE), {X: ALL_ALIKE}),
        ({"x": "A?"}, _pairs(X, FEWEST), {X: ALL_ALIKE}),
        ({"x": "AB"}, _pairs(X, FEWEST - 1), {X: SEVERAL}),
        ({"x": "AB"}, [*_pairs(X, FEWEST), *_pairs(X, 1, 1.1 * ALIKE)], {X: SEVERAL}),
        ({"x": "AB"}, [*_pairs(X, FEWEST), *_pairs(X, 1, -1.1 * ALIKE)], {X: SEVERAL}),
        ({"x": "AB"}, [*_pairs(X, FEWEST), *_pairs(X, 9, 0.3, code="changed")], {X: ALL_ALIKE}),
        ({"x": "AB"}, [*_pairs(X, FEWEST), *_pairs(X, 9, 0.3, seconds=0.9 * LONG)], {X: ALL_ALIKE}),
        ({"x": "AB"}, _pairs(X, FEWEST, seconds=0.9 * LONG), {X: SEVERAL}),
        ({"x": "AB"}, _pairs(X, FEWEST, code="unknown"), {X: SEVERAL}),
        ({"x": "AB", "y": "AB"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: ALL_ALIKE}),
        ({"x": "AB", "y": "AC"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: SEVERAL}),
        ({"x": "AB", "y": "A"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: ONE}),
    ],
)
def test_what_tells(gpus: dict[str, str], pairs: list[tuple[str, Point, Point]], expected: dict[str, Gpus]) -> None:
    """Enough long times of the same machine code, all the same on the same GPUs; nothing else."""
    told = tell(cast(Evidence, _Evidence(**gpus)), pairs)
    assert {benchmark: each.gpus for benchmark, each in told.items()} == expected


KERNEL, SLOWER = "transpose_write_coalesced", 1.02


@pytest.fixture
def slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel of 952ced2 is other machine code, and takes 2 % longer."""
    points, sha256 = History.points, Cubins.sha256

    def scaled(history: History, results: Any, benchmark: str) -> Iterator[Point]:
        head = results.commit_hash.startswith("952ced2") and benchmark.startswith("time_")
        for point in points(history, results, benchmark):
            if head and point.params.get("kernel") == KERNEL and point.value is not None:
                samples = tuple(SLOWER * sample for sample in point.samples)
                yield replace(point, value=SLOWER * point.value, samples=samples)
            else:
                yield point

    def other(cubins: Cubins, commit: str, arch: str, kernel: str, dtype: str, flags: str) -> str | None:
        made = commit.startswith("952ced2") and kernel == KERNEL
        return "another" if made else sha256(cubins, commit, arch, kernel, dtype, flags)

    monkeypatch.setattr(History, "points", scaled)
    monkeypatch.setattr(Cubins, "sha256", other)


ALIKE_NOTE = (
    ", which are alike (374 times of the same machine code differ by 0.27% at most): their times are SAME up to 1 %"
)


@pytest.mark.usefixtures("slower")
@pytest.mark.parametrize(
    ("base", "caught", "note"), [("740a787", True, ALIKE_NOTE), ("993f78c", False, ": their times are SAME up to 8%")]
)
def test_two_percent(base: str, caught: bool, note: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Between H200s of one sort, all that take 20 µs and more are seen, and only they; between those of two, none."""
    _, found = reviewed(ROOT, capsys, base, "952ced2", "--machine", "nvidia-h200")
    (told,) = (each for each in found["notes"] if each.startswith("not one GPU"))
    assert f"7 of 7 timed benchmarks{note}" in told
    times = {row["configuration"]: row for row in found["rows"] if row["kind"] == "timed"}
    long = {name for name, row in times.items() if f"({KERNEL}," in name and row["base"] >= LONG}
    assert len(long) > 70
    flagged = {name: row["verdict"] for name, row in times.items() if row["verdict"] != "SAME"}
    assert flagged == (dict.fromkeys(long, "SLOW") if caught else {})
