"""The cache between source and cubin: what tells entries apart, damage, and several processes at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_kernels import KERNELS
from kernelwatch.toolchain import cache
from kernelwatch.toolchain.nvcc_call import NvccOutput


@pytest.mark.filterwarnings("ignore:nvcc on .*Too big maxrregcount")  # of the step that makes PTX
@pytest.mark.parametrize("variable", ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"])
def test_options_of_the_environment(variable: str, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    """What nvcc takes from the environment makes another entry of the cache, which no run without it finds."""
    kernel = ("transpose_read_write_coalesced", "complex128", "-Xptxas -O0")
    plain = KERNELS[kernel[0]].cubin(*kernel[1:], arch="sm_90").resources.registers
    monkeypatch.setenv(variable, "-maxrregcount=24")
    assert KERNELS[kernel[0]].cubin(*kernel[1:], arch="sm_90").resources.registers == 24 != plain
    monkeypatch.delenv(variable)
    assert KERNELS[kernel[0]].cubin(*kernel[1:], arch="sm_90").resources.registers == plain


def _changed(path: Path, **fields: object) -> None:
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in {**entry, **fields}.items() if value is not None}))


def _of_another(path: Path) -> None:
    other = cache.key("c")
    cache.lookup(other, lambda: NvccOutput(b"other", "said"))
    path.write_bytes((path.parents[1] / other[:2] / f"{other}.json").read_bytes())


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


#: What is done to an entry of "code" and "said".
DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "another type": lambda path: path.write_bytes(b"[]"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
    "nested": lambda path: path.write_bytes(b"[" * 200_000),
    "messages": lambda path: _changed(path, messages="Used 18"),
    "messages of another type": lambda path: _changed(path, messages=[["said"]]),
    "data": lambda path: _changed(path, data="AAAA"),
    "written by an older commit": lambda path: _changed(path, digest=None),
    "of another kernel": _of_another,
    "pipe": _pipe,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_entry_is_made_anew(damage: Callable[[Path], object], empty_cache: Path) -> None:
    """A damaged entry counts as missing."""
    made: list[int] = []

    def make() -> NvccOutput:
        made.append(1)
        return NvccOutput(b"code", "said")

    name = cache.key("a", "b")
    assert cache.lookup(name, make) == cache.lookup(name, make)
    assert len(made) == 1
    path = empty_cache / name[:2] / f"{name}.json"
    assert [*empty_cache.rglob("*.json")] == [path], "where a fleet looks for them"
    damage(path)
    assert cache.lookup(name, make) == NvccOutput(b"code", "said")
    assert len(made) == 2
    assert cache.lookup(name, make).data == b"code"
    assert len(made) == 2


def test_keys_are_unambiguous() -> None:
    """Moving a character from one part to the next makes another key."""
    assert cache.key("ab", "c") != cache.key("a", "bc")
