"""A disk that is full at any write: what was stored is whole, one line says so, and with room again all goes on."""

from __future__ import annotations

import errno
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asv.console import log

from kernelwatch.asv import full_disk
from kernelwatch.store import jsonl, storing
from ptxcount.whole import UNFINISHED
from tests.faults import writer
from tests.faults.writer import start


@contextmanager
def room(left: int) -> Iterator[None]:
    """Leave so many bytes for a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("left", "is_enough"), [*((size, False) for size in range(0, 20_000, 4985)), (200_000, True)])
def test_stored(left: int, is_enough: bool, tmp_path: Path) -> None:
    """What a run had stored stays, and the next one adds to it; with enough room, the run stores all."""
    writer.store(tmp_path, 1)
    process = start(writer.run_in_room, tmp_path, 2, left)
    process.join()
    stored = writer.results(tmp_path)._results[writer.BENCHMARK]
    recorded = [entry["number"] for entry in jsonl.read(tmp_path / writer.MACHINE / writer.RECORD)]
    for path in tmp_path.rglob("*.json"):
        assert isinstance(json.loads(path.read_bytes()), dict), path
    assert not list(tmp_path.rglob(f"*{UNFINISHED}"))
    assert (process.exitcode == 0) == is_enough
    assert stored in ([[1, 2]] if is_enough else [[1], [1, 2]])
    assert recorded == ([1, 2] if is_enough else [1])
    with storing.alone(tmp_path):
        pass
    writer.store(tmp_path, 3)
    assert writer.results(tmp_path)._results[writer.BENCHMARK] == [*stored, 3]


NO_ROOM = "No space left on device"

#: What ended a command -> the beginning of the line that says so; empty if it is about something else.
ENDS: list[tuple[BaseException, str]] = [
    (OSError(errno.ENOSPC, NO_ROOM), f"a file system or a quota is full ([Errno 28] {NO_ROOM}); make room"),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), "a file system or a quota is full ("),
    (OSError(errno.EFBIG, "File too large", "/proc/no/file"), "the file system at /proc is full ("),
    (OSError(errno.EACCES, "Permission denied", "/proc/no"), ""),
    (ValueError("no"), ""),
]


@pytest.mark.parametrize("is_first", [True, False], ids=["itself", "what came of it"])
@pytest.mark.parametrize(("error", "line"), ENDS)
def test_explained(error: BaseException, line: str, is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names the file system and says what to do; any other error is told with its traceback."""
    last = error if is_first else RuntimeError("the rest")
    last.__context__ = None if is_first else error
    told: list[str] = []
    monkeypatch.setattr(log, "error", told.append)
    full_disk._told(lambda kind, *_: told.append(f"traceback of {kind.__name__}"))(type(last), last, None)
    (said,) = told
    assert said.startswith(line or "traceback of ")
    assert "\n" not in said
