"""Bisections that cannot start: GOOD and BAD are the same commit, or one of them has no number."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kernelwatch.cli import bisect as commands
from tests.commits import begin, commit
from tests.stored import samples, write

BENCHMARK = "time_transpose.Transpose.time_back_to_back"
CASE = "transpose_read_coalesced, 256x256, float32, -Xptxas -O3"


def test_equal_ends_are_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    commit_hash = commit(begin(tmp_path))
    assert commands.bisect(["load_sectors offset_copy offset=0 float32 -O3", "HEAD"], tmp_path) == 2
    message = f"cannot search: GOOD and BAD are the same commit, {commit_hash[:8]}; give an earlier GOOD\n"
    assert capsys.readouterr().err == message


def test_end_without_a_number_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = commit(begin(tmp_path)), commit(tmp_path)
    write(tmp_path, {good: {BENCHMARK: {CASE: samples(1.0)}}, bad: {BENCHMARK: {CASE: math.nan}}})
    name = f"{BENCHMARK}({CASE})"
    assert commands.bisect([name, good, bad, "--machine", "gpu"], tmp_path) == 2
    assert capsys.readouterr().err == (
        f"cannot search: {good[:8]} and {bad[:8]} have no common number of {name}: missing at {bad[:8]}: without "
        f"a value in head; run: asv run --record-samples --bench {BENCHMARK} {bad[:8]}^!\n"
    )
