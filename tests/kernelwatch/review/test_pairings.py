"""Any two runs that a commit's processes could have made."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwatch.review import pairings, selftest


def test_ways() -> None:
    """Each two runs once, whichever is first; no process in both."""
    assert pairings.pairings(4) == [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    assert len(pairings.pairings(8)) == 210
    assert pairings.pairings(3) == []


def test_differences() -> None:
    """Of the medians over all samples of two processes."""
    samples = np.array([[[1.0, 3.0], [5.0, 7.0], [8.0, 8.0], [2.0, 20.0]]])
    assert pairings.differences(samples, [((0, 1), (2, 3)), ((0, 2), (1, 3))]).tolist() == [
        [pytest.approx(8 / 4 - 1)],
        [pytest.approx(6 / 5.5 - 1)],
    ]


def test_table() -> None:
    """A row a length, and whatever differs by more than runs may; what not all processes measured is left out."""
    long: list[tuple[float, ...]] = [(1e-3,) * 2, (1e-3,) * 2, (1.004e-3,) * 2, (1.004e-3,) * 2]
    short: list[tuple[float, ...]] = [(1e-6,) * 2, (1e-6,) * 2, (1e-6,) * 2, (1.1e-6,) * 2]
    text = pairings.table({"long": long, "short": short, "rare": [(1.0, 9.0)] * 3})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert rows[2:] == [
        ["20 µs and above", "1", "0.000", "0.400", "0.000", "0.400"],
        ["below", "1", "4.762", "5.000", "4.762", "5.000"],
    ]
    assert text.splitlines()[0] == "3 ways to make two runs of 2 of 4 processes"
    assert text.splitlines()[-2:] == [
        "In 1 of them a time from 20 µs on differs by more than 0.3%.",
        "Most in 1: long",
    ]


@pytest.mark.parametrize(
    ("commit", "machine", "message"),
    [
        ("993f78c", "nvidia-h200", "has samples of 2 processes a configuration of 993f78c"),
        ("926c240", "x", "no results of 'x'"),
    ],
)
def test_refusals(commit: str, machine: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What makes no two runs is refused with what to do."""
    assert selftest.main(["--pairings", commit, "--machine", machine]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--pairings", "926c240"], ["--machine", "nvidia-h200"]])
def test_half_an_order(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Of which machine, of which commit: one does not guess the other."""
    with pytest.raises(SystemExit):
        selftest.main(words)
    assert "--pairings COMMIT and --machine NAME belong together" in capsys.readouterr().err
