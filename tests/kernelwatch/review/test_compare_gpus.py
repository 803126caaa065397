"""Two GPUs of a kind: what did not change tells whether what did can be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernelwatch.project import ROOT
from kernelwatch.review.commits import Side, Sides
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.notes import ALIKE, FEWEST, likeness, notes
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.noise import LONG, Gpus
from kernelwatch.store.results import History, Point
from tests.stored import reviewed

ONE, ALL_ALIKE, SEVERAL = Gpus.ONE, Gpus.ALIKE, Gpus.SEVERAL
X, Y = "time_x.X.time_back_to_back", "time_y.Y.time_back_to_back"


class _Evidence:
    """Which GPUs measured a benchmark of base and head; machine code is what a parameter says."""

    def __init__(self, **gpus: str) -> None:
        self._gpus = gpus

    def gpus(self, benchmark: str) -> tuple[frozenset[str | None], ...]:
        return tuple(
            frozenset(None if each == "?" else each for each in side) for side in self._gpus[benchmark[5]].split("/")
        )

    def is_of_one_gpu(self, benchmark: str, point: Point) -> bool:
        return point.params.get("series") == "kept"

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
        ({"x": "A/A"}, _pairs(X, 1, 0.5), {X: ONE}),
        ({"x": "?/?"}, _pairs(X, 1, 0.5), {X: ONE}),
        ({"x": "A/B"}, _pairs(X, FEWEST, 0.9 * ALIKE), {X: ALL_ALIKE}),
        ({"x": "A/B"}, _pairs(X, FEWEST, -0.9 * ALIKE), {X: ALL_ALIKE}),
        ({"x": "A/?"}, _pairs(X, FEWEST), {X: SEVERAL}),
        ({"x": "A/AB"}, _pairs(X, FEWEST), {X: SEVERAL}),
        ({"x": "AB/AB"}, _pairs(X, FEWEST), {X: SEVERAL}),
        ({"x": "A/B"}, _pairs(X, FEWEST - 1), {X: SEVERAL}),
        ({"x": "A/B"}, [*_pairs(X, FEWEST), *_pairs(X, 1, 1.1 * ALIKE)], {X: SEVERAL}),
        ({"x": "A/B"}, [*_pairs(X, FEWEST), *_pairs(X, 1, -1.1 * ALIKE)], {X: SEVERAL}),
        ({"x": "A/B"}, [*_pairs(X, FEWEST), *_pairs(X, 9, 0.3, code="changed")], {X: ALL_ALIKE}),
        ({"x": "A/B"}, [*_pairs(X, FEWEST), *_pairs(X, 9, 0.3, seconds=0.9 * LONG)], {X: ALL_ALIKE}),
        ({"x": "A/B"}, _pairs(X, FEWEST, seconds=0.9 * LONG), {X: SEVERAL}),
        ({"x": "A/B"}, _pairs(X, FEWEST, code="unknown"), {X: SEVERAL}),
        ({"x": "A/B", "y": "A/B"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: ALL_ALIKE}),
        ({"x": "A/B", "y": "A/C"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: SEVERAL}),
        ({"x": "A/B", "y": "B/A"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: SEVERAL}),
        ({"x": "A/B", "y": "A/A"}, [*_pairs(X, FEWEST), *_pairs(Y, 1)], {X: ALL_ALIKE, Y: ONE}),
    ],
)
def test_what_tells(gpus: dict[str, str], pairs: list[tuple[str, Point, Point]], expected: dict[str, Gpus]) -> None:
    """Enough long times of the same machine code, all the same on the same two GPUs; nothing else."""
    found = likeness(cast(Evidence, _Evidence(**gpus)), pairs)
    assert {benchmark: each.gpus for benchmark, each in found.items()} == expected


@pytest.mark.parametrize(("series", "expected"), [(["kept", "kept"], ONE), (["kept", "moved"], SEVERAL)])
def test_series_of_a_fleet(series: list[str], expected: Gpus) -> None:
    """Two GPUs share a benchmark: they are as one if each measured its series of base and of head."""
    points = [Point({"code": "same", "series": each}, LONG) for each in series]
    found = likeness(cast(Evidence, _Evidence(x="AB/AB")), [(X, point, point) for point in points])
    assert found[X].gpus is expected


def test_note() -> None:
    """It tells of all that is alike, those that other GPUs measured too, and of what is not."""
    pairs = [*_pairs(X, FEWEST, 0.004), *_pairs(Y, FEWEST + 1, 0.001), *_pairs("time_z.Z.time_back_to_back", 1)]
    gpus = likeness(cast(Evidence, _Evidence(x="A/B", y="A/C", z="A/D")), pairs)
    history, results = cast(Any, SimpleNamespace(benchmarks=lambda _: [])), cast(Any, SimpleNamespace(env_vars={}))
    sides = Sides(history, Side("b", "b" * 40, results), Side("c", "c" * 40, results))
    again = "to judge smaller changes measure both on one GPU: kernelwatch measure bbbbbbbb cccccccc"
    assert list(notes(sides, gpus)) == [
        "not one GPU, but several of the kind, measured 2 of 3 timed benchmarks, which are alike (201 times of the "
        "same machine code differ by 0.40 % at most): no threshold is below 1 % from 20 µs on, 5 % below; " + again,
        "not one GPU, but several of the kind, measured 1 of 3 timed benchmarks: no threshold is below 8 %; " + again,
    ]


def test_what_does_not_differ_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """No two runs of one GPU differ by more: f22cf79 and 926c240, but for the kernel that was padded."""
    _, found = reviewed(ROOT, capsys, "f22cf79", "926c240", "--machine", "nvidia-h200")
    long = [row for row in found["rows"] if row["kind"] == "timed" and row["base"] >= LONG]
    same = [abs(row["ratio"] - 1) for row in long if "(transpose_read_write_coalesced," not in row["configuration"]]
    assert len(same) > 3 * FEWEST
    assert 0.5 * ALIKE < max(same) < ALIKE


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

    def other(cubins: Cubins, commit: str, arch: str, launch: str) -> str | None:
        made = commit.startswith("952ced2") and launch.startswith(f"{KERNEL} ")
        return "another" if made else sha256(cubins, commit, arch, launch)

    monkeypatch.setattr(History, "points", scaled)
    monkeypatch.setattr(Cubins, "sha256", other)


@pytest.mark.usefixtures("slower")
@pytest.mark.parametrize(("base", "percent"), [("740a787", "0.29"), ("993f78c", "0.38")])
def test_two_percent(base: str, percent: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Between H200s that are alike, all that take 20 µs and more are seen, and only they."""
    _, found = reviewed(ROOT, capsys, base, "952ced2", "--machine", "nvidia-h200")
    (told,) = (each for each in found["notes"] if each.startswith("not one GPU"))
    assert (
        "7 of 7 timed benchmarks, which are alike (373 times of the same machine code differ by "
        f"{percent} % at most): no threshold is below 1 %"
    ) in told
    times = {row["configuration"]: row for row in found["rows"] if row["kind"] == "timed"}
    long = {name for name, row in times.items() if f"({KERNEL}," in name and row["base"] >= LONG}
    assert len(long) > 70
    flagged = {name: row["verdict"] for name, row in times.items() if row["verdict"] != "SAME"}
    assert flagged == dict.fromkeys(long, "SLOWER")
