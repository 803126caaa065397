"""Two kinds of GPU beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from experiments import kinds, pages
from kernelwatch.store.noise import LONG
from kernelwatch.store.results import Point

DATA = pages.EVIDENCE / "kinds.jsonl"

#: The axes of a timed benchmark here.
TILE = {
    "kernel": "transpose_read_write_coalesced",
    "rows x columns": "1024x1024",
    "dtype": "complex128",
    "flags": "-Xptxas -O0",
}


class _Stored:
    """What a machine stored of a commit."""

    machine = "m"

    def __init__(self, *values: tuple[dict[str, str], float | None, float | None]) -> None:
        self._values = values

    def times(self, _: Any) -> Iterator[tuple[str, Point, float | None]]:
        """As History's."""
        for params, value, copies in self._values:
            yield "time_transpose.Transpose.time_back_to_back", Point(params, value), copies


def test_ratios() -> None:
    """Of long times alone that both have, with the flags of the tables; in time and in copies."""
    short, other, missing, lcm = (
        TILE | changed
        for changed in (
            {"rows x columns": "256x256"},
            {"dtype": "int8"},
            {"dtype": "float16"},
            {"flags": "-Xptxas -dlcm=cg"},
        )
    )
    first: Any = _Stored(
        (TILE, 2e-4, 2.0), (short, LONG / 2, 1.0), (other, LONG, None), (missing, 1.0, 1.0), (lcm, 1.0, 1.0)
    )
    second: Any = _Stored(
        (TILE, 5e-4, 3.0), (short, LONG, 1.0), (other, 3 * LONG, 1.0), (missing, None, 1.0), (lcm, 1.0, 1.0)
    )
    found = kinds.ratios((first, None), (second, None))
    assert [(each.what, each.dtype, each.flags) for each in found] == [
        (TILE["kernel"], "complex128", "-Xptxas -O0"),
        (TILE["kernel"], "int8", "-Xptxas -O0"),
    ]
    assert [each.time for each in found] == pytest.approx([2.5, 3.0])
    assert [each.copies for each in found] == [pytest.approx(1.5), None]


def test_page() -> None:
    """Of what is kept: how far the peak bandwidths differ, and which GPUs there were."""
    page = kinds.page(*kinds.read(DATA))
    assert "The peak\nbandwidths of the two differ by a factor of 1.44." in page
    assert "615978a2" in page
    assert "954f0716" in page


def test_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared is kept, and the page is made of it."""
    known, found = kinds.read(DATA)
    lines: list[dict[str, Any]] = [{"facts": known}]
    lines += [{"commit": commit, **asdict(each)} for commit, ratios in found.items() for each in ratios]
    monkeypatch.setattr(kinds, "compare", lambda *_: iter(lines))
    assert kinds.main(["--data", str(tmp_path / "kinds.jsonl")]) == 0
    assert (tmp_path / "kinds.jsonl").read_bytes() == DATA.read_bytes()


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
        (["--machines", "nvidia-h200", "nvidia-h200", "--beside", "abc"], "0 commits 'abc' that nvidia-h200 measured"),
        (["--machines", "a", "nvidia-h200"], "holds no results of 'a'"),
        (["--machines", "nvidia-h200", "no-gpu-x86_64"], "no-gpu-x86_64 has no times of commit '952ced2'"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what there is; what was kept stays."""
    before = DATA.read_bytes()
    assert kinds.main(words) == 2
    assert DATA.read_bytes() == before
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out
