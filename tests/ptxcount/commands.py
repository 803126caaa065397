"""The command ``ptxcount``: arguments that count the kernel ``row_sums``, and outputs of commands."""

from pathlib import Path

import pytest

from ptxcount.command_line import main
from tests.ptxcount.sources import FOLDER

SUMS = str(FOLDER / "row_sums.cu")
GIVEN = "sums=float32[32] matrix=float32[32,4] int32:32 int32:4"
ROW_SUMS = f"--entry row_sums --grid 1 --block 32 {GIVEN}"


def read_output(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Return the standard output of a command; assert that it succeeds."""
    assert main([*map(str, words)]) == 0
    return capsys.readouterr().out


def read_error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the line that a failing command prints on standard error; assert that it prints nothing else."""
    assert main([*words]) == 1
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    assert captured.err.endswith("\n")
    return captured.err
