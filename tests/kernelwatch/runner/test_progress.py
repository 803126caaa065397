"""Progress of a run: its share, remaining time, outcomes and failures."""

import sys
import time

import pytest
from asv.console import log

from kernelwatch.error_text import first_error
from kernelwatch.instrument.skip_reasons import NOT_SUPPORTED
from kernelwatch.runner.progress import Progress
from kernelwatch.runner.protocol import RunConfiguration

#: A race in a file with a long path: both of its line numbers stay visible.
RACE = (
    f"SharedRaceError: {'folder/' * 20}k.cu:3 (PTX line 43): race in shared memory by block (0, 0, 0), thread "
    "(0, 0, 0): load of 4 bytes at shared address 252, also touched by thread (63, 0, 0) since the "
    "last barrier, at "
    f"{'folder/' * 20}k.cu:2 (PTX line 37); __syncthreads() between them orders both"
)

#: Text of a failure -> its first error.
ERRORS = {
    "CompileError: nvcc failed\na.cu(5): error: no such thing\n2 errors": "a.cu(5): error: no such thing",
    "WrongOutputError: k: element [0] is 1\nmore": "WrongOutputError: k: element [0] is 1",
    "g++: a.h:3:9: fatal error: x.h: No such file": "a.h:3:9: fatal error: x.h: No such file",
    "nvcc failed: nvcc -D'a(b,c)=d'\n<command-line>: error: expected ',', found \"1\"\n<command-line>: note: b": (
        "<command-line>: error: expected ',', found \"1\""
    ),
    "nvcc failed: nvcc -include x.h\n<command-line>: fatal error: x.h: No such file\ncompilation terminated.": (
        "<command-line>: fatal error: x.h: No such file"
    ),
    "nvcc failed: nvcc --bad\nnvcc warning : redefinition\nnvcc fatal   : Unknown option '--bad'": (
        "nvcc fatal   : Unknown option '--bad'"
    ),
    "nvcc failed: nvcc\nptxas k.ptx, line 5; fatal   : Unsupported .version 9.4\nptxas fatal   : Ptx": (
        "ptxas k.ptx, line 5; fatal   : Unsupported .version 9.4"
    ),
    "a\tlong\x1b[2J" + 1400 * "b": "a long [2J" + 990 * "b",
    RACE: RACE,
    "": "",
}


@pytest.mark.parametrize("text", ERRORS)
def test_first_error_is_found(text: str) -> None:
    """The compiler's first line with an error, else the first line, without control characters, at most 1000 long."""
    assert first_error(text) == ERRORS[text]


def _configuration(index: int, skipped: str = "", failed: str = "") -> RunConfiguration:
    return RunConfiguration(group="time_a.A", index=index, params=str(index), skipped=skipped, failed=failed)


def test_progress_has_share_and_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 4 configurations with 2 rounds, a started round counts 1 of 8, a finished configuration 2 of 8.

    The summary counts outcomes, without configurations that no commit supports. Failures that differ only in numbers
    are one.
    """
    messages: list[str] = []
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(log, "info", messages.append)
    monkeypatch.setattr(log, "error", messages.append)
    names = ["time_a.A.time_x", "track_control.A.track_copy_ratio"]
    progress = Progress({"time_a.A": 4}, {"time_a.A": 2}, {"time_a.A": names})
    clock[0] = 10
    progress.begin_rounds("time_a.A", 0)
    for index, skipped, failed in ((1, "why", ""), (0, "", ""), (2, "", "no: 0.5"), (3, "", "no: -8.0")):
        clock[0] += 10
        progress.note_configuration(_configuration(index, skipped, failed))
    progress.note_configuration(_configuration(1, f"{NOT_SUPPORTED}k is not for int8"))  # not counted
    shown = [line.strip() for line in capsys.readouterr().out.split("\r\x1b[K") if line]
    # After 10, 20 and 30 s, these are 1, 1 + 2 and 1 + 2 + 1 of 8: configuration 0 had one round left.
    assert shown[:3] == ["12%, 70 s left: time_a.A", "38%, 33 s left: time_a.A", "50%, 30 s left: time_a.A"]
    assert shown[-1] == "100%, 0 s left: time_a.A"
    assert messages == ["time_a.A(2) FAILED\nno: 0.5"]
    progress.print_summary()
    assert messages[1:] == [
        "time_a: 1 measured, 1 n/a, 2 FAILED",
        "track_control: 1 measured, 1 n/a, 2 FAILED",
        "2 n/a: why",
        "2 configurations FAILED: no: 0.5",
    ]
