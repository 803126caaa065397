"""Sums of rows, gathers and histograms: verified where they are counted, and counted as their addresses say."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwatch.counting import transactions
from kernelwatch.kernel import Launch

ELEMENTS = 1 << 12


CASES: dict[str, tuple[str, dict[str, int], dict[str, float]]] = {
    "rows of whole sectors": (
        "row_sum float32", {"rows": 20, "columns": 256}, {"load_sectors": 4, "load_lines": 1, "store_sectors": 1}
    ),
    "rows of eight bytes an element": (
        "row_sum float64", {"rows": 21, "columns": 128}, {"load_sectors": 8, "load_lines": 2, "store_sectors": 1}
    ),
    "one element": ("row_sum float32", {"rows": 1, "columns": 1}, {"load_sectors": 1, "store_sectors": 1}),
    "results are neighbours": ("gather float32", {"size": ELEMENTS}, {"store_sectors": 4, "store_lines": 1}),
    "results of eight bytes": ("gather float64", {"size": ELEMENTS}, {"store_sectors": 8, "store_lines": 2}),
    "a histogram": (
        "histogram int8", {"size": ELEMENTS + 5, "bins": 64}, {"load_sectors": 1, "load_lines": 1, "store_sectors": 0}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("launch", "arguments", "metrics"), CASES.values(), ids=CASES)
def test_counted(launch: str, arguments: dict[str, Any], metrics: dict[str, float]) -> None:
    """Outputs are the references'; sectors and lines are what the addresses say."""
    kernel, dtype = launch.split()
    wanted = Launch(kernel=kernel, dtype=dtype, arguments=arguments)
    found = transactions.outcomes([wanted])[str(wanted)]
    assert not found.failure
    assert not found.missing
    assert {name: found.metrics[name] for name in metrics} == pytest.approx(metrics)


def test_gathered_elements_lie_apart() -> None:
    """Random indices: a request of indices is 4 sectors, one of elements nearly as many as lanes."""
    wanted = Launch(kernel="gather", dtype="float32", arguments={"size": 1 << 16})
    loads = transactions.outcomes([wanted])[str(wanted)].metrics["load_sectors"]
    assert (4 + 31) / 2 < loads <= (4 + 32) / 2
