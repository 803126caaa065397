"""Two kinds of GPU beside each other."""

from __future__ import annotations

import pytest

from benchmarks.suite import control
from experiments import kinds
from report.compare.noise import LONG

SIDES = kinds.of_commit(kinds.MACHINES, kinds.COMMIT)

TIMED = "time_transpose.Transpose.time_back_to_back"
TILE = {
    "kernel": "transpose_read_write_coalesced",
    "rows x columns": "12800x12800",
    "dtype": "complex128",
    "flags": "-Xptxas -O0",
}


def _stored(benchmark: str) -> list[float]:
    """What each machine has of one configuration."""
    values = [history.value(results, benchmark, TILE) for history, results in SIDES]
    return [value for value in values if value is not None]


def test_ratios() -> None:
    """One that is easy to look up, in time and in copies; of long times alone, and of two flag sets."""
    found = kinds.ratios(SIDES[0], SIDES[1])
    (time, other), (copies, other_copies) = _stored(TIMED), _stored(control(TIMED))
    key = "Transpose", TILE["kernel"], TILE["dtype"], TILE["flags"]
    own = {each.time: each.copies for each in found if (each.benchmark, each.what, each.dtype, each.flags) == key}
    assert own[other / time] == pytest.approx(other_copies / copies)
    history, results = SIDES[0]
    long = [
        point
        for benchmark in history.benchmarks("time")
        for point in history.points(results, benchmark)
        if (point.value or 0) >= LONG and "dlcm" not in point.params.get("flags", "")
    ]
    assert len(found) == len(long) > 200
    assert {each.benchmark for each in found if each.copies is None} == {"DeviceCopy"}


def test_page() -> None:
    """How far the peaks of the memories are apart, and which GPUs there were."""
    page = kinds.page(kinds.MACHINES, kinds.COMMIT)
    assert "The peaks of the memories are\n1.44 times apart." in page
    assert "ce4e0086" in page
    assert "be8bc642" in page


def test_table() -> None:
    """Medians, with the range where there is one, in the order of the flags; a column for each dtype that has any."""
    flags = kinds.FLAGS[0]
    found = [
        kinds.Ratio("T", "k", "int8", flags, 1.0, 2.0),
        kinds.Ratio("T", "k", "int8", flags, 1.5, 4.0),
        kinds.Ratio("T", "k", "float64", flags, 3.0, None),
        kinds.Ratio("D", "copy", "float32", "", 1.25, None),
        kinds.Ratio("T", "k", "dtype of old", kinds.FLAGS[1], 2.0, None),
        kinds.Ratio("T", "k", "int8", kinds.FLAGS[1], 9.0, None),
    ]
    tables = (kinds.table(kinds.cells(found, value)) for value in (lambda each: each.time, lambda each: each.copies))
    times, copies = (
        [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]] for text in tables
    )
    assert times == [
        ["`T`", "`k`", f"`{flags}`", "1.25 (1.00 to 1.50)", "", "3.00", ""],
        ["`T`", "`k`", f"`{kinds.FLAGS[1]}`", "9.00", "", "", "2.00"],
        ["`D`", "`copy`", "", "", "1.25", "", ""],
    ]
    assert copies == [["`T`", "`k`", f"`{flags}`", "3.00 (2.00 to 4.00)"]]


def test_another() -> None:
    """Of the medians that both have, by how much they differ, and the one that does most."""
    flags = kinds.FLAGS[0]
    times: kinds.Cells = {(flags, "T", "k"): {"int8": [1.0, 1.2], "float64": [2.0], "float32": [3.0]}}
    others: kinds.Cells = {(flags, "T", "k"): {"int8": [1.0], "float64": [2.0], "float16": [9.0]}}
    assert kinds.another(times, others) == ["2", "0.050", "0.100", f"`T`, `k`, int8, `{flags}`: 1.000, not 1.100"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--commit", "abc"], "0 commits 'abc' that nvidia-h200 and nvidia-h100-80gb-hbm3 measured: "),
        (["--commit", ""], " commits '' that nvidia-h200 and"),
        (["--commit", "98a96e0"], "0 commits '98a96e0'"),
        (["--beside", "abc"], "0 commits 'abc' that nvidia-h200 measured"),
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
