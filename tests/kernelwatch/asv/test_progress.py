"""What a run says while it runs."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from asv.console import log

from kernelwatch.asv import progress

NAN = float("nan")
BENCHMARK = {"name": "track_x", "params": [["1", "2"], ["a", "b"]]}


def _results(values: list[float | None], said: str = "", code: int = 0) -> Any:
    name = str(BENCHMARK["name"])
    return SimpleNamespace(get_result_value=lambda *_: values, stderr={name: said}, errcode={name: code})


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv is at the second of eight benchmarks."""
    monkeypatch.setattr(log, "_total", 8)
    monkeypatch.setattr(log, "_count", 2)
    monkeypatch.setattr(log, "_logger", logging.getLogger("quiet"))
    monkeypatch.setattr(log, "_needs_newline", True)
    monkeypatch.setattr(log, "_prev_message", "track_x", raising=False)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.0, 2.0], "4 measured"),
        ([NAN, NAN], "4 n/a"),
        ([1.0, NAN, None], "2 measured, 2 n/a, 2 FAILED"),
    ],
)
def test_one_line_a_module(values: list[float | None], shown: str, steps: None, said: list[str]) -> None:
    """Configurations are counted, not listed."""
    told = progress.Progress()
    for name in ("track_x.A.track", "track_x.B.track", "time_y.A.time"):
        told.ends(_results(values), BENCHMARK | {"name": name})
    assert said == [f"track_x: {shown}"]
    told.told()
    told.told()
    assert len(said) == 2
    assert said[1].startswith("time_y: ")


def test_what_fails_is_said_at_once(steps: None, said: list[str]) -> None:
    """With the name and each reason once."""
    told = progress.Progress()
    text = "For parameters: 1, a\nTraceback\nValueError: no\n\nFor parameters: 1, b\nTraceback\nValueError: no"
    told.ends(_results([1.0, None, None], text, 1), BENCHMARK)
    assert said == ["track_x: 2 FAILED\nValueError: no"]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Traceback\n  File\nValueError: garbage\n\nasv: setup_cache failed (exit status 1)", "ValueError: garbage"),
        ("asv: setup_cache failed (exit status -9)", "asv: setup_cache failed (exit status -9)"),
    ],
    ids=["an exception", "killed"],
)
def test_why_a_class_cannot_be_prepared(output: str, reason: str, said: list[str]) -> None:
    """Once, where asv says that each of its benchmarks is skipped, and not why."""
    create = progress._with_reason(lambda *_: (None, output))
    assert create(None, "track_compiled.Compiled.track_registers", 1.0, "{}") == (None, output)
    quiet = progress.Progress()
    quiet.warning("track_compiled.Compiled.track_registers skipped (setup_cache failed)")
    quiet.info("track_compiled.Compiled.track_registers", reserve_space=True)
    quiet.add_padded("failed")
    quiet.warning("something else")
    assert said == [f"track_compiled cannot be measured: {reason}", "something else"]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What asv's log was told."""
    found: list[str] = []
    for level in ("info", "warning", "error"):
        monkeypatch.setattr(log, level, lambda text, **_: found.append(text))
    return found


def test_in_place_on_a_terminal(
    steps: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line tells the benchmark that begins, and is written over."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    told = progress.Progress()
    for name in ("track_x.A.track", "track_x.B.track"):
        told.info(name, reserve_space=True)
        told.info("not this")
    assert capsys.readouterr().out == "\r\x1b[Ktrack_x.A.track\r\x1b[Ktrack_x.B.track"
