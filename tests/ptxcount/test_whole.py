"""Atomic writes: a file is complete or unchanged."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ptxcount.util import atomic_write


def test_mode_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o640)
    atomic_write.write(path, "after")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after", 0o640)


def test_special_files_stay(tmp_path: Path) -> None:
    """A pipe may be /dev/stdout or a shell's >(command)."""
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    atomic_write.write(path, "text")
    reader.join()
    assert read == ["text"]
    assert path.is_fifo()


@pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")])
def test_error_leaves_the_file(owner: object, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(OSError, match="No space"):
        atomic_write.write(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Another user may have guessed the temporary name."""
    path, theirs = tmp_path / "file", tmp_path / "theirs"
    theirs.write_text("before")
    (tmp_path / f"file.{threading.get_native_id()}{atomic_write.UNFINISHED}").symlink_to(theirs)
    atomic_write.write(path, "after")
    assert (path.read_text(), theirs.read_text(), path.is_symlink()) == ("after", "before", False)
