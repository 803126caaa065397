"""What a run says while it runs."""

from __future__ import annotations

import itertools
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from asv.console import log

from runner import progress

NAN = float("nan")
BENCHMARK = {"name": "track_x", "params": [["1", "2"], ["a", "b"]]}


def _results(values: list[float | None], said: str = "", code: int = 0) -> Any:
    name = str(BENCHMARK["name"])
    return SimpleNamespace(get_result_value=lambda *_: values, stderr={name: said}, errcode={name: code})


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv is at the second of eight benchmarks, 10 s after the first began."""
    seconds = itertools.chain([0.0], itertools.repeat(10.0))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    monkeypatch.setattr(log, "_total", 8)
    monkeypatch.setattr(log, "_count", 2)
    monkeypatch.setattr(log, "_logger", logging.getLogger("quiet"))
    monkeypatch.setattr(log, "_needs_newline", True)
    monkeypatch.setattr(log, "_prev_message", "track_x", raising=False)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.0, 2.0], "2 measured"),
        ([NAN, NAN], "2 n/a"),
        ([1.0, NAN, None], "1 measured, 1 n/a, 1 FAILED"),
    ],
)
def test_outcome(values: list[float | None], shown: str) -> None:
    """Configurations are counted, not listed."""
    assert progress.outcome(values) == shown


def test_one_line_and_what_is_left(steps: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a benchmark; 2 of 8 took 10 s, so that 6 take 30."""
    told = progress.Progress()
    told.begins(BENCHMARK)
    told.ends(_results([1.0] * 4), BENCHMARK)
    assert capsys.readouterr().out.strip() == "4 measured, 30.0s left"


def test_in_place_on_a_terminal(
    steps: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line tells the configuration, and is written over."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    told = progress.Progress()
    told.begins(BENCHMARK)
    told.begins(BENCHMARK)
    first, second = capsys.readouterr().out.split("\r\x1b[K")[1:]
    assert first.startswith("track_x, 1 of 4")
    assert second.startswith("track_x, 2 of 4")
    assert "\n" not in first + second


def test_each_reason_once() -> None:
    """However many configurations fail for it."""
    said = "For parameters: 1, a\nTraceback\nValueError: no\n\nFor parameters: 1, b\nTraceback\nValueError: no"
    assert progress.reasons(said) == ["ValueError: no"]
