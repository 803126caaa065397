"""What timed processes say beside their numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import track_control
from kernelwatch import suite
from kernelwatch.asv import timed
from kernelwatch.instrument import machine, messages
from kernelwatch.store.run_record import RunRecord

PARAMS = (0, 67108864, "float32", "-Xptxas -O3")


def test_every_timed_benchmark_has_a_control() -> None:
    """But for the copy itself, which would be compared with itself."""
    controlled = {control.timed for control in vars(track_control).values() if hasattr(control, "track_copy_ratio")}
    assert {name for name, each in timed.CLASSES.items() if each not in controlled} == {suite.time(suite.DEVICE_COPY)}


def test_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a process says among other lines arrives in the record of the run, once."""
    for _ in range(2):
        messages.machine_code("ab12", "offset_copy float32 -Xptxas -O3", "sm_90")
        messages.held_back("software power cap", PARAMS)
        messages.held_back('"quoted"', PARAMS)
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
    assert json.loads(stored) == {
        "commit": "c0ffee",
        "arch": "sm_90",
        "nvcc": machine.nvcc_release(),
        "cubins": {"offset_copy float32 -Xptxas -O3": "ab12"},
    }
