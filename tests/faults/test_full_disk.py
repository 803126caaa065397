"""A disk that is full at any write: what was stored is whole, one line says so, and with room again all goes on."""

from __future__ import annotations

import errno
import json
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asv.console import log

from kernelwatch.asv import full_disk
from kernelwatch.store import jsonl, storing
from kernelwatch.store.whole import UNFINISHED
from tests.faults import writer
from tests.faults.writer import start

#: Bytes of a page, which is what a small disk hands out.
PAGE = 4096

#: Room on a small disk in pages, or for a file in bytes.
PAGES, SIZES = range(0, 60, 5), range(0, 40_000, 4985)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A disk of 2 MB; None where no disk may be mounted."""
    place = tmp_path_factory.mktemp("disk")
    words = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        yield None
        return
    yield place
    subprocess.run(["umount", str(place)], check=True)


@contextmanager
def room(disk: Path | None, left: int) -> Iterator[None]:
    """Leave so many pages on the disk; without one, so many bytes for a file."""
    if disk is None:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return
    filler = disk / "filler"
    filler.touch()
    filler.write_bytes(bytes(max(0, shutil.disk_usage(disk).free // PAGE - left) * PAGE))
    try:
        yield
    finally:
        filler.unlink()


def test_stored(disk: Path | None, tmp_path: Path) -> None:
    """What a run had stored stays, and the next one adds to it; with enough room, the run stores all."""
    done = set()
    for place, left in [*((disk, pages) for pages in PAGES if disk), *((None, size) for size in SIZES)]:
        folder = (place or tmp_path) / "here"
        folder.mkdir()
        writer.store(folder, 1)
        with room(place, left):
            process = start(writer.run_in_room, folder, 2, resource.getrlimit(resource.RLIMIT_FSIZE)[0])
            process.join()
        stored = writer.results(folder)._results[writer.BENCHMARK]
        recorded = [entry["number"] for entry in jsonl.read(folder / writer.MACHINE / writer.RECORD)]
        for path in folder.rglob("*.json"):
            assert isinstance(json.loads(path.read_bytes()), dict), path
        assert not list(folder.rglob(f"*{UNFINISHED}"))
        assert stored in ([1], [1, 2])
        assert recorded == ([1, 2] if process.exitcode == 0 else [1])
        storing.mend(folder)
        writer.store(folder, 3)
        assert writer.results(folder)._results[writer.BENCHMARK] == [*stored, 3]
        done.add(process.exitcode == 0)
        shutil.rmtree(folder)
    assert done == {True, False}


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
