"""What timed processes note and say beside their numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import time_copy, time_transpose, timed, track_control
from benchmarks.instruments import readings, remarks
from runner.record import RunRecord

PARAMS = (0, 67108864, "float32", "-Xptxas -O3")


def test_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples come back by configuration, without the first of each process."""
    for process, times in ((1, [9.0, 1.0, 2.0]), (2, [8.0, 3.0])):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        for seconds in times:
            readings.note(tmp_path, "OffsetCopy", PARAMS, seconds, 0.5)
    found = readings.read(tmp_path, "OffsetCopy", PARAMS)
    assert [(reading.process, reading.seconds) for reading in found] == [(1, 1.0), (1, 2.0), (2, 3.0)]
    assert readings.read(tmp_path, "OffsetCopy", (1, *PARAMS[1:])) == []
    assert readings.read(tmp_path, "StrideCopy", PARAMS) == []


def test_copy_ratio(tmp_path: Path) -> None:
    """The control reports each sample over the copy just before it, and takes none of its own."""
    for seconds, copy_seconds in ((5.0, 1.0), (3.0, 2.0), (4.0, 2.5), (2.0, 3.0)):
        readings.note(tmp_path, "OffsetCopy", PARAMS, seconds, copy_seconds)
    control = track_control.OffsetCopy()
    control.setup(str(tmp_path), *PARAMS)
    reported = control.track_copy_ratio(str(tmp_path), *PARAMS)  # type: ignore[attr-defined]
    assert reported == {"samples": [1.5, 1.6, 0.66667], "number": 1}


def test_every_timed_benchmark_has_a_control() -> None:
    """But for the copy itself, which would be compared with itself."""
    controlled = {control.timed for control in track_control._Control.__subclasses__()}
    modules = (time_copy, time_transpose)
    classes = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    every = {each for each in classes if issubclass(each, timed._Timed) and not each.__name__.startswith("_")}
    assert every - controlled == {time_copy.DeviceCopy}


def test_remarks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a process says among other lines arrives in the record of the run, once."""
    for _ in range(2):
        remarks.machine_code("ab12", "offset_copy", "float32", "-Xptxas -O3", "sm_90")
        remarks.held_back("software power cap", PARAMS)
        remarks.held_back('"quoted"', PARAMS)
    output = f"For parameters: 1\n{capsys.readouterr().err}\ncoalescing-watch: none\nxx coalescing-watch: {{}}"
    run = RunRecord({"l2_bytes": 7})
    run.note("c0ffee", "time_copy.OffsetCopy.time_back_to_back", output)
    line = run.line()
    assert line["held_back"] == [
        {
            "commit": "c0ffee",
            "configuration": "time_copy.OffsetCopy.time_back_to_back(0, 67108864, float32, -Xptxas -O3)",
            "reasons": ["software power cap", '"quoted"'],
        }
    ]
    assert line["before"]["l2_bytes"] == 7
    run.append_to(str(tmp_path), "m")
    stored = (tmp_path / "m" / "cubins.jsonl").read_text(encoding="utf-8")
    assert stored == '{"commit": "c0ffee", "arch": "sm_90", "cubins": {"offset_copy, float32, -Xptxas -O3": "ab12"}}\n'
