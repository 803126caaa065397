"""A user without a home folder, or with one that cannot be written: nothing is kept, a line says so, all else works."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from kernelwatch import home, project, scratch
from kernelwatch.instrument import machine
from kernelwatch.runner import run
from kernelwatch.toolchain import cache
from kernelwatch.toolchain.nvcc_call import NvccOutput


def _unknown(_: int) -> NoReturn:
    raise KeyError("getpwuid(): uid not found")


@pytest.fixture(params=["none", "no folder", "read-only"])
def user(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A user as `docker run --user 54321` makes them, or whose home folder is of an image."""
    for name in ("XDG_CACHE_HOME", home.CACHE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    if request.param == "none":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", _unknown)
    else:
        monkeypatch.setenv("HOME", "/nonexistent/home" if request.param == "no folder" else "/proc")
        monkeypatch.setattr(os, "mkdir", _refused(os.mkdir))
    yield request.param
    assert not [path for path in tmp_path.iterdir() if path.name != ".asv"]


def _refused(mkdir: object) -> object:
    """Let nobody, not even root, make the folder of the case."""

    def refuse(path: object, *more: object, **options: object) -> None:
        if str(path).startswith("/nonexistent"):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *more, **options)  # type: ignore[operator]

    return refuse


def test_nothing_is_kept(user: str) -> None:
    """What is asked for is made each time; the line says what to set."""
    made = NvccOutput(b"code", "said")
    assert [cache.lookup(cache.key("a"), lambda: made) for _ in range(2)] == [made, made]
    line = cache.problem()
    assert line is not None
    assert " cannot be written: [Errno " in line
    assert line.endswith(f"set {home.CACHE} to a folder that can")
    assert "\n" not in line
    assert ("no home folder" in line) == (user == "none")


@pytest.mark.usefixtures("user")
def test_machine_has_a_name() -> None:
    """A run writes nothing of the machine into a home folder."""
    assert vars(run.machine_of({"machine": "m"}, None)) == machine.stable("m", None)


def test_a_run_has_a_home_folder(user: str) -> None:
    """For pip, which does not begin without one."""
    with scratch.of_a_run() as folder:
        assert (os.environ["HOME"] == str(folder)) == (user == "none")


def test_folders_are_made(tmp_path: Path) -> None:
    """One that can be written is made with those above it."""
    assert home.problem(tmp_path / ".cache" / "kernelwatch") is None
