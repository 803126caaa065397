"""Counters of the catalog's kernels against Nsight Compute's."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from kernelwatch.counting import transactions
from kernelwatch.kernel import Launch

EXACT = ["load_requests", "load_sectors", "store_requests", "store_sectors", "shared_store_wavefronts"]


def _readings(name: str) -> list[dict[str, str]]:
    text = (Path(__file__).parents[2] / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _case(row: dict[str, str]) -> tuple[str, dict[str, int]]:
    """Kernel and arguments of a reading."""
    kernel = re.sub(r" \(.*", "_unpadded" * ("no padding" in row["kernel"]), row["kernel"])
    shape = row["shape (rows x columns)"]
    named = re.findall(r"(\w+)=(\d+)", shape) or zip(("rows", "columns"), shape.split("x"), strict=True)
    return kernel, {{"n": "size"}.get(name, name): int(value) for name, value in named}


@pytest.mark.parametrize("row", _readings("nsight-compute-h200.csv"), ids=lambda row: "-".join(list(row.values())[:3]))
def test_nsight_compute(row: dict[str, str]) -> None:
    """Requests, sectors and store wavefronts are the chip's; its load wavefronts hold up to 8 % more than the rule."""
    kernel, arguments = _case(row)
    result = transactions.count(kernel, row["dtype"], **arguments)
    totals = result.counters.totals()
    assert result.problem is None
    assert {name: totals[name] for name in EXACT} == {name: int(row[name]) for name in EXACT}
    reading = int(row["shared_load_wavefronts"])
    assert totals["shared_load_wavefronts"] <= reading <= 1.08 * totals["shared_load_wavefronts"]


@pytest.mark.parametrize(
    "row", _readings("nsight-compute-lines-h200.csv"), ids=lambda row: f"{row['launch']} {row['access']}"
)
def test_lines(row: dict[str, str]) -> None:
    """The lines of a request are the sets of L1's tags that it makes the chip access, over the whole warp."""
    launch = Launch.parse(row["launch"])
    totals = transactions.count(launch.kernel, launch.dtype, **launch.arguments).counters.totals()
    assert totals[f"{row['access']}_lines"] == int(row["set_accesses"])
