"""A text that tests of `ptxcount` compile again in the same process is not compiled again, whatever its folder is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from ptxcount.engine import launch
from ptxcount.gate import compilations
from ptxcount.source import nvcc, ptxas
from ptxcount.source.nvcc import ARCH, Compilation

_compile = nvcc.compile_source
#: What nvcc made of a file or a text, by all that this depends on, and the file's folder.
_made: dict[object, tuple[Compilation, Path]] = {}


def _compilation(source: Path | str, flags: str = "", arch: str = ARCH, instances: Sequence[str] = ()) -> Compilation:
    elsewhere = "-I" in flags or "-include" in flags
    if elsewhere or (isinstance(source, Path) and not source.is_file()):
        return _compile(source, flags, arch, instances)
    variables = sorted(each for each in os.environ.items() if each[0] == "PATH" or each[0].startswith("NVCC"))
    key: tuple[object, ...] = (source, flags, arch, *instances, *variables)
    folder = Path()
    if isinstance(source, Path):
        folder = source.resolve().parent
        headers = [(each.name, each.read_bytes()) for each in sorted(folder.glob("*.h"))]
        key = (source.name, source.read_bytes(), *headers, *key[1:])
    if key not in _made:
        _made[key] = _compile(source, flags, arch, instances), folder
    made, before = _made[key]
    if folder == before:
        return made
    moved = [Path(str(each).replace(str(before), str(folder))) for each in made.files]
    return Compilation(made.ptx.replace(str(before), str(folder)), moved)


_assemble = ptxas.assemble


@lru_cache
def _without_files(ptx: str, flags: str, arch: str) -> dict[str, ptxas.Resources]:
    return _assemble(ptx, flags, arch)


def _assembled(ptx: str, flags: str, arch: str) -> dict[str, ptxas.Resources]:
    """What ptxas says, whatever folder the sources are in."""
    return _without_files(re.sub(r"^\s*\.(file|loc)\b.*", "", ptx, flags=re.MULTILINE), flags, arch)


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all that compiles with `ptxcount` look first among what was compiled."""
    monkeypatch.setattr(nvcc, "compile_source", _compilation)
    monkeypatch.setattr(launch, "compile_source", _compilation)
    monkeypatch.setattr(ptxas, "assemble", _assembled)
    monkeypatch.setattr(compilations, "query_layout", lambda *recipe: None)  # which would ask nvcc each time


@pytest.fixture(autouse=True)
def _cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
