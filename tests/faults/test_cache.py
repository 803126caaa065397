"""A read-only cache or home folder: a run warns first, and compiles all the same."""

import os
import pwd
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from asv.console import log

from kernelwatch.config import cache_dir
from kernelwatch.instrument import machine
from kernelwatch.runner import compiler, run_machine, whole_run
from kernelwatch.toolchain import cache
from kernelwatch.toolchain.nvcc_call import NvccOutput

MADE = NvccOutput(b"code" * 1000, "said")


@contextmanager
def limit_file_size(free: int) -> Iterator[None]:
    """Let files have at most `free` bytes, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def _refuse_mkdir(mkdir: object) -> object:
    """Return a `mkdir` that refuses folders below /nonexistent, even to root."""

    def refuse(path: object, *arguments: object, **options: object) -> None:
        if str(path).startswith("/nonexistent"):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *arguments, **options)  # type: ignore[operator]

    return refuse


#: Folders of the cache that cannot be written: below a file, on a read-only file system, with an invalid name, or below
#: a missing home folder, as under `docker run --user 54321`.
FOLDERS = ["file", "file/below", "/proc/cache", "x" * 300, "link", "HOME=", "HOME=/nonexistent/home", "HOME=/proc"]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "link").symlink_to("link")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    _, is_home, user = request.param.partition("HOME=")
    if is_home:
        for name in ("XDG_CACHE_HOME", cache_dir.CACHE):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(os, "mkdir", _refuse_mkdir(os.mkdir))
        monkeypatch.setenv("HOME", user) if user else monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", mock.Mock(side_effect=KeyError("getpwuid(): uid not found")))
    else:
        monkeypatch.setenv(cache_dir.CACHE, str(tmp_path / request.param))
    return cache_dir.cache_folder("kernels")


@pytest.mark.parametrize("folder", FOLDERS, indirect=True)
def test_unwritable_cache_is_explained(folder: Path) -> None:
    """Lookups return results, and one line has the reason and the remedy."""
    assert [cache.lookup(cache.make_key("a"), lambda: MADE) for _ in range(2)] == [MADE, MADE]
    line = cache.find_problem() or ""
    assert line.startswith(f"{folder} cannot be written: [Errno")
    assert line.endswith("compiled each time; set KERNELWATCH_CACHE to a writable folder")
    assert "\n" not in line
    has_none = "no home folder" in line
    assert has_none == ("HOME" not in os.environ)
    assert vars(run_machine.load_machine({"machine": "m"}, None)) == machine.stable_facts("m", None)
    with whole_run.prepare_run_folder() as scratch:
        assert (os.environ["HOME"] == str(scratch)) == has_none
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("folder", ["new"], indirect=True)
def test_full_disk_leaves_no_file(folder: Path) -> None:
    """A later write succeeds."""
    for free, entries in ((0, 0), (None, 1)):
        with nullcontext() if free is None else limit_file_size(free):
            assert cache.lookup(cache.make_key("a"), lambda: MADE) == MADE
        assert len([path for path in folder.rglob("*") if path.is_file()]) == entries


@pytest.mark.parametrize("folder", ["new/below"], indirect=True)
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(("free", "is_full"), [(0, True), (32 << 10, True), (1 << 20, False)])
def test_cache_needs_room_for_a_cubin(folder: Path, free: int, is_full: bool, is_there: bool) -> None:
    """The cache's folder may be missing."""
    if is_there:
        folder.mkdir(parents=True)
    with limit_file_size(free):
        assert (cache.find_problem() is not None) == is_full


@pytest.mark.parametrize(("folder", "free"), [("file", 1 << 20), ("new", 0), ("new", 1 << 20)], indirect=["folder"])
def test_run_first_warns_only_of_unwritable_cache(folder: Path, free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr(log, "warning", messages.append)
    monkeypatch.setattr(compiler, "choose_compiler", lambda _: None)
    monkeypatch.setattr(machine, "find_gpu", mock.Mock(side_effect=InterruptedError))  # the run's next step
    with limit_file_size(free), pytest.raises(InterruptedError):
        whole_run.run_suite(SimpleNamespace(results_dir="results"), {})
    is_writable = folder.parent.name == "new" and free > 0
    assert [line.partition(" cannot be written: ")[0] for line in messages] == [str(folder)] * (not is_writable)
    assert [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"] == []
