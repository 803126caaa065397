"""Sums of rows, gathers and histograms: verified where they are counted, and counted as their addresses say."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_kernels import MIXED
from kernelwatch.counting import transactions
from kernelwatch.kernel import Launch
from kernelwatch.kernel.sources import Source

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


WRONG = {
    "row_sum": ("step = 16", "step = 8", {"rows": 3, "columns": 70}, "float32"),
    "gather": ("[index[i]]", "[i]", {"size": 100}, "float64"),
    "histogram": ("found[values[i]]", "found[0]", {"size": 100, "bins": 9}, "int8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose results are others fails, with the first place."""
    right, wrong, arguments, dtype = WRONG[name]
    kernel = MIXED[name]
    text = kernel.source_text()
    assert text.count(right) == 1
    monkeypatch.setattr(kernel, "at_commit", lambda *_: Source(text.replace(right, wrong)), raising=False)
    problem = transactions.count(kernel, dtype, **arguments).problem()
    assert problem is not None
    assert problem.startswith("element [")
