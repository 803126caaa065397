"""A cache that cannot be written, told once: kernels are compiled all the same."""

from __future__ import annotations

import multiprocessing
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from asv.console import log

from gpu_kernels import KERNELS
from kernelwatch.asv import plugin as asv_plugin
from kernelwatch.errors import CacheWarning
from kernelwatch.instrument import machine
from kernelwatch.toolchain import cache
from kernelwatch.toolchain.nvcc_call import NvccOutput
from tests.faults.test_full_disk import room

MADE = NvccOutput(b"code" * 1000, "said")

#: Where the cache is: in place of a folder, in a file system that takes none, by a name that is none.
FOLDERS = ["file", "file/below", "/proc/cache", "x" * 300, "link"]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is none."""
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "link").symlink_to("link")
    path: Path = tmp_path / request.param
    monkeypatch.setenv("GPU_KERNELS_CACHE", str(path))
    monkeypatch.setenv(cache._TOLD, "")
    return path


def _looked_up(times: int = 3) -> list[str]:
    """What is told as entries are made that cannot be kept."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number in range(times):
            assert cache.lookup(cache.key(str(number)), lambda: MADE) == MADE
    assert all(each.category is CacheWarning for each in said)
    return [str(each.message) for each in said]


@pytest.mark.parametrize("folder", FOLDERS, indirect=True)
def test_no_folder(folder: Path) -> None:
    """One line, by the first process that meets it."""
    (line,) = _looked_up()
    assert line.startswith(f"{folder} cannot be written: [Errno")
    assert line.endswith("compiled anew each time; set GPU_KERNELS_CACHE to a folder that can")
    assert "\n" not in line
    if folder.name == "file":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_looked_up) == []
    assert cache.problem() is None


@pytest.mark.parametrize("folder", ["new"], indirect=True)
def test_full_disk(folder: Path) -> None:
    """Nothing is left of what could not be written; later, there is room again."""
    with room(None, 0):
        (line,) = _looked_up()
    assert line.startswith(f"{folder} cannot be written: [Errno")
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert _looked_up() == []
    assert len(list(folder.rglob("*.json"))) == 3


@pytest.mark.parametrize("folder", ["new"], indirect=True)
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(("left", "is_full"), [(0, True), (32 << 10, True), (1 << 20, False)])
def test_room_for_a_cubin(folder: Path, left: int, is_full: bool, is_there: bool) -> None:
    """A disk that takes a small file, and no cubin, is full; that the folder is there already is no problem."""
    if is_there:
        folder.mkdir()
    with room(None, left):
        assert (cache.problem() is not None) == is_full


def test_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told, and told once."""
    monkeypatch.setenv(cache._TOLD, "")
    for name in "ba":
        (tmp_path / name).write_text("no folder")
        monkeypatch.setenv("GPU_KERNELS_CACHE", str(tmp_path / name))
        assert str(tmp_path / name) in (cache.problem() or "")
        assert cache.problem() is None


@pytest.mark.parametrize("folder", ["file"], indirect=True)
def test_cubin(folder: Path) -> None:
    """A kernel is compiled nevertheless."""
    with pytest.warns(CacheWarning, match=f"^{folder} cannot be written: ") as said:
        assert KERNELS["offset_copy"].cubin("float32", arch="sm_90").resources.registers > 0
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize(("folder", "left"), [("file", 1 << 20), ("new", 0), ("new", 1 << 20)], indirect=["folder"])
def test_before_a_run(folder: Path, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run tells it before it begins, and its processes do not tell it again."""

    def begin() -> None:
        raise InterruptedError

    told: list[str] = []
    monkeypatch.setattr(log, "warning", told.append)
    monkeypatch.setattr(asv_plugin, "_choose_compiler", lambda: None)
    monkeypatch.setattr(machine, "gpu", begin)
    run = asv_plugin._recorded(lambda *_: None)
    with room(None, left), pytest.raises(InterruptedError):
        run(SimpleNamespace, SimpleNamespace(results_dir="results"))
    is_writable = folder.name == "new" and left > 0
    assert [line.partition(" cannot be written: ")[0] for line in told] == [str(folder)] * (not is_writable)
    assert is_writable or _looked_up() == []
    assert [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"] == []
