"""A run removes what killed runs left, and nothing that anybody else made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwatch import scratch

#: A run that says where its folder is, and waits.
RUN = """
import pathlib, sys, time
from kernelwatch import scratch
with scratch.of_a_run(pathlib.Path(sys.argv[1])) as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(60)
"""


def _notes(parent: Path) -> None:
    (parent / "kernelwatch-notes").mkdir(mode=0o700)
    (parent / "kernelwatch-notes" / "thesis.txt").write_text("chapter 1")


def _clone(parent: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "coalescing-watch-2"], cwd=parent, check=True)


def _fifo(parent: Path) -> None:
    (parent / "kernelwatch-x").mkdir(mode=0o700)
    for name in ("lock", scratch.MARK):
        os.mkfifo(parent / "kernelwatch-x" / name, 0o600)


def _link_of_the_mark(parent: Path) -> None:
    (parent / "kernelwatch-x").mkdir(mode=0o700)
    (parent / "theirs").touch(0o600)
    for name in ("lock", scratch.MARK):
        (parent / "kernelwatch-x" / name).symlink_to(parent / "theirs")


def _dangling(parent: Path) -> None:
    (parent / "kernelwatch-x").mkdir(mode=0o700)
    (parent / "kernelwatch-x" / "lock").symlink_to(parent / "made")


def _link_of_a_folder(parent: Path) -> None:
    (parent / "real").mkdir(mode=0o755)
    (parent / "real" / scratch.MARK).touch(0o600)
    (parent / "kernelwatch-x").symlink_to(parent / "real")


def _shared(parent: Path) -> None:
    (parent / "shared").mkdir()
    (parent / "shared").chmod(0o777)
    (parent / "shared" / scratch.MARK).touch(0o600)


def _of_another_user(parent: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder to another user")
    (parent / "theirs").mkdir(mode=0o700)
    (parent / "theirs" / scratch.MARK).touch(0o600)
    os.chown(parent / "theirs", 54321, 54321)


NOT_OURS = [_notes, _clone, _fifo, _link_of_the_mark, _dangling, _link_of_a_folder, _shared, _of_another_user]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder of a short name, which sockets have room in."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("place", ["TMPDIR", "the folder of the folders"])
@pytest.mark.parametrize("make", NOT_OURS)
def test_what_no_run_made_stays(
    make: Callable[[Path], None], place: str, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it lies and whatever it is called: nothing of it is removed, made or waited for."""
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    parent = short / "scratch"
    parent.mkdir(mode=0o700)
    make(short if place == "TMPDIR" else parent)
    before = sorted(short.rglob("*"))
    with scratch.of_a_run(parent) as folder:
        assert folder.parent == parent
    assert sorted(short.rglob("*")) == before


def test_what_a_killed_run_left(short: Path) -> None:
    """It stays while its run does."""
    parent = short / "scratch"
    with subprocess.Popen([sys.executable, "-c", RUN, str(parent)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        assert (folder.parent, folder.stat().st_mode & 0o777, parent.stat().st_mode & 0o777) == (parent, 0o700, 0o700)
        with scratch.of_a_run(parent):
            assert (folder / "file").exists()
        run.send_signal(signal.SIGKILL)
    assert (folder / "file").exists()
    with scratch.of_a_run(parent) as own:
        assert list(parent.iterdir()) == [own]
    assert not list(parent.iterdir())


@pytest.mark.parametrize("why", ["deep", "a command", "shared", "a link", "no folder"])
def test_folder_that_cannot_be_used(why: str, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has a folder in TMPDIR, where nothing is cleared away."""
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    parent = short / {"deep": "deep" * 25, "a command": "$(touch X)"}.get(why, "scratch")
    if why == "shared":
        parent.mkdir()
        parent.chmod(0o777)
    elif why == "a link":
        (short / "real").mkdir(mode=0o700)
        parent.symlink_to(short / "real")
    elif why == "no folder":
        parent.touch()
    _notes(short)
    with scratch.of_a_run(parent) as folder:
        assert folder.parent == short
        (folder / "file").touch()
    assert not folder.exists()
    assert (short / "kernelwatch-notes" / "thesis.txt").exists()
