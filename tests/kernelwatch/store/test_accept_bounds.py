"""The bounds of the numbers that acceptance takes: the first and the last that may be, and what lies beyond."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from kernelwatch.store import models
from kernelwatch.store.accept.refusal import RefusedError, convert

#: A benchmark's type -> values that may be, and values that may not.
BOUNDS: dict[str, tuple[list[float], list[float]]] = {
    "time": ([5e-324, 99_999.0], [0, -1.0, 1e5, 1e308]),
    "track": ([0, 999_999_999_999_999], [-1, 1e15, 1e308]),
}


@pytest.mark.parametrize("column", ["result", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75", "samples"])
@pytest.mark.parametrize("benchmark", BOUNDS)
def test_bounds(benchmark: str, column: str) -> None:
    """Of values, samples and statistics."""
    model = models.row(benchmark)
    for values, taken in zip(BOUNDS[benchmark], (True, False), strict=True):
        for value in values:
            row: list[Any] = [[], [], "1", *[None] * 10]
            row[models.Row.__struct_fields__.index(column)] = [[value]] if column == "samples" else [value]
            with nullcontext() if taken else pytest.raises(RefusedError, match="Expected `float`"):
                convert(row, model, "a row")


@pytest.mark.parametrize(("kind", "last", "step"), [("Spent", 1e7, 1e-6), ("Time", 1 << 43, 1), ("Small", 1 << 40, 1)])
def test_bounds_of_the_rest(kind: str, last: float, step: float) -> None:
    """From 0, below the last."""
    for value, taken in ((0, True), (last - step, True), (-step, False), (last, False)):
        with nullcontext() if taken else pytest.raises(RefusedError, match="Expected `"):
            assert convert(value, getattr(models, kind), "a number") == value
