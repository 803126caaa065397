"""Usable memory, arrays in little memory, atomic writes, and nouns that agree with a number."""

import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ptxcount.util import atomic_write, host_memory
from ptxcount.util.grammar import choose_form, count_noun


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="no /proc/meminfo to compare with")
def test_total_memory_is_limited_by_the_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kilobytes = int(Path("/proc/meminfo").read_text(encoding="ascii").split()[1])
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(host_memory, "LIMIT", limit)
    assert host_memory.total_memory_bytes() == pytest.approx(kilobytes * 1024, rel=0.01)
    # no limit, a limit beyond the machine's memory, and one below
    for text, expected in (("max\n", kilobytes * 1024), ("9" * 18, kilobytes * 1024), ("4096000\n", 4096000)):
        limit.write_text(text, encoding="ascii")
        assert host_memory.total_memory_bytes() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "uint64", "complex128"])
@pytest.mark.parametrize("step", [1, 2654435761])
def test_range_in_blocks_as_in_numpy(dtype: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "BLOCK", 7)
    expected = (np.arange(1000) * np.int64(step)).astype(dtype)
    assert host_memory.make_range(1000, dtype, step).tobytes() == expected.tobytes()
    assert host_memory.make_range(0, dtype, step).shape == (0,)


def test_range_needs_little_more_than_its_array() -> None:
    """A direct construction would take nine times the array's memory."""
    size = 64 << 20
    tracemalloc.start()
    numbers = host_memory.make_range(size, "int8")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size <= peak < 1.5 * size
    assert numbers[-1] == -1


@pytest.mark.parametrize(("number", "noun", "text"), [
    (0, "count", "0 counts are"), (1, "launch", "1 launch is"), (2, "launch", "2 launches are"),
    (2, "more time", "2 more times are"),
])  # fmt: skip
def test_noun_agrees_with_number(number: int, noun: str, text: str) -> None:
    assert f"{count_noun(number, noun)} {choose_form(number, 'is', 'are')}" == text


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
