"""The sums in Overview's cells, and the sentence on changes over several commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch.show.site import words
from kernelwatch.show.site.measured import MeasuredCommit
from kernelwatch.show.site.overview import ShownMachine, _SummaryConfiguration
from kernelwatch.show.site.packed import pack_numbers

#: Case, values of three metrics at three commits (None: not measured, "": without the metric), and the sums by commit.
SUMS: list[tuple[str, list[list[Any]], dict[str, float]]] = [
    ("all are there", [[1, 2, 0], [1, 3, 0], [2, 3, 0]], {"a": 3, "b": 4, "c": 5}),
    ("a metric came later, and is 0", [[1, 2, ""], [1, 3, ""], [2, 3, 0]], {"a": 3, "b": 4, "c": 5}),
    ("a metric was never counted", [[1, 2, ""], [1, 3, ""], [2, 3, ""]], {"a": 3, "b": 4, "c": 5}),
    ("a metric came later, and is not 0", [[1, 2, ""], [1, 3, ""], [2, 3, 4]], {"c": 9}),
    ("one is not measured", [[1, None, 0], [1, 3, 0], ["", "", ""]], {"b": 4}),
    ("all are 0", [[0, 0, 0], ["", "", ""], [0, 0, 0]], {"a": 0, "c": 0}),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in SUMS], ids=[row[0] for row in SUMS])
def test_sum_needs_all_metrics(values: list[list[Any]], expected: dict[str, float]) -> None:
    graph = SimpleNamespace(line=["a", "b", "c"])
    history: Any = SimpleNamespace(find_axes=lambda _: {"w": ["1", "2"]}, get_type=lambda _: "track", graph=graph)
    measured = {}
    for commit, numbers in zip("abc", values, strict=True):
        counted = {name: number for name, number in zip("LSC", numbers, strict=True) if number != ""}
        texts = {name: pack_numbers([None, value], is_time=False, digits=None) for name, value in counted.items()}
        measured[commit] = MeasuredCommit(texts)
    machine = ShownMachine(history, measured)
    assert dict(machine.sum_series({"w": "2"}, *"LSC")) == expected


def test_times_are_counted_without_missing_ones() -> None:
    history: Any = SimpleNamespace(list_benchmarks=lambda _: ["time_a"])
    measured = {commit: MeasuredCommit({"time_a": "1,,3", "track_b": "5,6"}) for commit in "ab"}
    assert ShownMachine(history, measured).time_count == 4


def test_cluster_sectors_are_not_summed() -> None:
    sweep: Any = SimpleNamespace(name="X", shared=True)
    benchmarks = _SummaryConfiguration("", sweep, {}).sector_benchmarks
    assert benchmarks == [f"track_counted.X.track_sectors_{kind}" for kind in ("loaded", "stored", "of_atomics")]


SPANS = [
    (1, 1, ""),
    (2, 0, "Made in one of 2 commits since bbbbbbbb, none of which touch kernels."),
    (40, 1, "Made in one of 40 commits since bbbbbbbb, 1 of which touches kernels."),
    (522, 5, "Made in one of 522 commits since bbbbbbbb, 5 of which touch kernels."),
]


@pytest.mark.parametrize(("count", "touching", "text"), SPANS)
def test_change_over_several_commits_is_said(count: int, touching: int, text: str) -> None:
    group = {
        "machine": "gpu", "kernel": "k", "verdict": "slower", "timed": True, "size": 1.0, "elsewhere": False,
        "base": "b" * 40, "of": {"benchmark": "time_a.A.time_x", "params": {}},
    }  # fmt: skip
    between = {"b" * 40: {"count": count, "touching_count": touching, "touching": [{}] * min(touching, 1)}}
    changes: list[dict[str, Any]] = [
        {"machine": "other", "groups": []},
        {"machine": "gpu", "groups": [group], "between": between},
    ]
    assert words.describe_span(changes) == text
    assert words.describe_span(changes[:1]) == ""
