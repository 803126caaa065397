"""Another run clears away what killed runs left, at every step of a run that makes its own folder."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.asv import scratch


class Other:
    """Another run, which clears once, in a thread; perhaps it holds the lock until the first has found it held."""

    def __init__(self, parent: Path, *, waits: bool) -> None:
        self._waits = waits
        self._has_lock, self._was_met = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=scratch.clear, args=(parent,))
        self._lock, self._remove = fcntl.flock, shutil.rmtree

    def clears(self) -> None:
        """Let it clear, the first time that this is called; return when it has, or when it holds the lock."""
        if self._thread.ident is None:
            self._thread.start()
            if self._waits:
                assert self._has_lock.wait(10)
            else:
                self._thread.join()

    def flock(self, *asked: Any) -> None:
        """Stand for `fcntl.flock`."""
        try:
            self._lock(*asked)
        except BlockingIOError:
            self._was_met.set()
            raise

    def rmtree(self, folder: Path, **options: Any) -> None:
        """Stand for `shutil.rmtree`."""
        if threading.current_thread() is self._thread and self._waits:
            self._has_lock.set()
            assert self._was_met.wait(10)
        self._remove(folder, **options)


@pytest.mark.parametrize("step", ["made", "opened", "locked"])
def test_another_run_clears(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the lock is opened, before what is opened is locked, and while the other one holds it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other, make = Other(tmp_path, waits=step == "locked"), tempfile.mkdtemp

    def mkdtemp(**options: str) -> str:
        folder = make(**options)
        if step != "opened":
            other.clears()
        return folder

    def flock(*asked: Any) -> None:
        if step == "opened" and threading.current_thread() is threading.main_thread():
            other.clears()
        other.flock(*asked)

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(shutil, "rmtree", other.rmtree)
    with scratch.of_a_run() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700, "nobody else reads it"
        scratch.clear(tmp_path)
        assert folder.is_dir(), "a run that goes on keeps its folder"
        other.clears()
    assert not folder.exists()


def test_what_runs_of_before_left(tmp_path: Path) -> None:
    """Their folders had another name."""
    for prefix in (scratch.PREFIX, scratch.OLD):
        (tmp_path / f"{prefix}x").mkdir()
    (tmp_path / "another").mkdir()
    scratch.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["another"]
