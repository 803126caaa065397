"""The lines of asv's benchmark grid."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kernelwatch.show.site import summaries

NAN = math.nan


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        # All measured: asv's own mean.
        ([[1.0, 2.0, 2.0], [4.0, 2.0, 8.0]], [2.0, 2.0, 4.0]),
        ([[3.0]], [3.0]),
        # One that joins does not move the line, whatever its size; what it does then, does.
        ([[1.0, 1.0, 1.0], [None, NAN, 16.0]], [4.0, 4.0, 4.0]),
        ([[2.0, 2.0, 2.0], [None, 2.0, 8.0]], [2.0, 2.0, 4.0]),
        # Nor does one that leaves.
        ([[2.0, 2.0, 8.0], [8.0, 8.0, None]], [4.0, 4.0, 8.0]),
        # What is lacked in between counts once it is measured again.
        ([[1.0, 1.0, 1.0], [1.0, None, 4.0]], [1.0, 1.0, 2.0]),
        ([[1.0, 1.0, 1.0, 1.0], [1.0, 4.0, None, 4.0]], [1.0, 2.0, 2.0, 2.0]),
        # Commits without any value.
        ([[1.0, None, 4.0], [1.0, NAN, 4.0]], [1.0, None, 4.0]),
        ([[None, None]], [None, None]),
        # No logarithm: asv's mean.
        ([[0.0, 5.0], [2.0, 5.0]], [0.0, 5.0]),
    ],
)
def test_chain(series: list[list[float | None]], expected: list[float | None]) -> None:
    """Line by hand."""
    assert summaries.chain(*series) == [value if value is None else pytest.approx(value) for value in expected]


def test_a_machine_that_joins_makes_no_step(site: Path) -> None:
    """No commit changes the device copy, and the H100 has its times on some commits alone."""
    found = json.loads((site / "graphs" / "summary" / "time_copy.DeviceCopy.time_back_to_back.json").read_text())
    values = [value for _, value in found if value is not None]
    assert len(values) >= 7
    assert max(values) / min(values) < 1.01
