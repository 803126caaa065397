"""Two kinds of GPU beside each other."""

from __future__ import annotations

import math

import pytest

from experiments import kinds
from report.results import History

SIDES = [kinds.measured(machine, kinds.COMMIT) for machine in kinds.MACHINES]

TILE = {
    "kernel": "transpose_read_write_coalesced",
    "rows_x_columns": "12800x12800",
    "dtype": "complex128",
    "flags": "-Xptxas -O0",
}


def test_ratios() -> None:
    """One that is easy to look up; and the other way round they are the inverse."""
    first, second = (
        History(machine).value(results, "time_transpose.Transpose.time_back_to_back", **TILE) or math.nan
        for machine, (_, results) in zip(kinds.MACHINES, SIDES, strict=True)
    )
    found, inverse = kinds.ratios(*SIDES), kinds.ratios(*reversed(SIDES))
    key = "Transpose", TILE["kernel"], TILE["dtype"], TILE["flags"]
    own = [each.time for each in found if (each.benchmark, each.kernel, each.dtype, each.flags) == key]
    assert second / first in own
    assert {1 / each.time for each in found} & {each.time for each in inverse}
    assert {each.copies is None for each in found if each.benchmark == "DeviceCopy"} == {True}
    assert {each.copies is None for each in found if each.benchmark != "DeviceCopy"} == {False}


def test_table() -> None:
    """Medians by dtype; other flag sets, and what has no value, are left out."""
    flags = kinds.FLAGS[0]
    found = [
        kinds.Ratio("T", "k", "int8", flags, 1.0, 2.0),
        kinds.Ratio("T", "k", "int8", flags, 1.5, 4.0),
        kinds.Ratio("T", "k", "float64", flags, 3.0, None),
        kinds.Ratio("T", "k", "int8", "-Xptxas -dlcm=cg", 9.0, 9.0),
        kinds.Ratio("D", "copy", "float32", "", 1.25, None),
    ]
    tables = (kinds.table(found, lambda each: each.time), kinds.table(found, lambda each: each.copies))
    times, copies = (
        [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]] for text in tables
    )
    assert times == [
        ["`T`", "`k`", f"`{flags}`", "1.25", "", "", "3.00", ""],
        ["`D`", "`copy`", "", "", "", "1.25", "", ""],
    ]
    assert copies == [["`T`", "`k`", f"`{flags}`", "3.00", "", "", "", ""]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--commit", "abc"], "nvidia-h200 has no results of commit 'abc', only of f22cf79d"),
        (
            ["--commit", "98a96e0"],
            "nvidia-h100-80gb-hbm3 has no results of commit '98a96e0', only of f22cf79d, 926c2401, 952",
        ),
        (["--machines", "a", "nvidia-h200"], "holds no results of 'a'"),
        (["--machines", "nvidia-h200", "no-gpu-x86_64"], "no-gpu-x86_64 has no times of commit '952ced2'"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what there is."""
    assert kinds.main(words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out
