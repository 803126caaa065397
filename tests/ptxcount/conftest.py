"""Compilations and arrays that tests of `ptxcount` share."""

import itertools
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from ptxcount.engine import kernel_counts
from ptxcount.gate import compilations
from ptxcount.source import cuda_compiler, ptxas
from ptxcount.source.cuda_compiler import ARCH, Compilation
from ptxcount.util.errors import CompileError
from tests.ptxcount.compiled_project import project
from tests.ptxcount.gate_repository import repository
from tests.ptxcount.languages import Arrays

__all__ = ["project", "repository"]
_compile = cuda_compiler.compile_source
#: Output or error of nvcc by source and other inputs, with the folder of the source.
_compilations: dict[object, tuple[Compilation | CompileError, Path]] = {}


def _compile_once(source: Path | str, flags: str = "", arch: str = ARCH, instances: Sequence[str] = ()) -> Compilation:
    """Compile, unless an equal source with equal headers was compiled before, maybe in another folder."""
    folder = source.resolve().parent if isinstance(source, Path) else Path()
    elsewhere = "-include" in flags or "-I" in flags.replace("-I include", "")  # include lies beside the source
    if elsewhere or (isinstance(source, Path) and not source.is_file()):
        return _compile(source, flags, arch, instances)
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith(("PATH", "NVCC")))
    key: tuple[object, ...] = (source, flags, arch, *instances, *variables)
    if isinstance(source, Path):
        text = re.sub(rb"[ \t]*// ptxcount: .*", b"", source.read_bytes())
        headers = (path for path in folder.rglob("*.*h") if path.is_file())
        contents = [(path.relative_to(folder), path.read_bytes()) for path in sorted(headers)]
        key = (source.name, text, *contents, *key[1:])
    if key not in _compilations:
        try:
            _compilations[key] = _compile(source, flags, arch, instances), folder
        except CompileError as error:
            _compilations[key] = error, folder
    compilation, first_folder = _compilations[key]
    if isinstance(compilation, CompileError):
        raise CompileError(str(compilation).replace(str(first_folder), str(folder)))
    if folder == first_folder:
        return compilation
    moved = [Path(str(file).replace(str(first_folder), str(folder))) for file in compilation.files]
    return Compilation(compilation.ptx.replace(str(first_folder), str(folder)), moved)


_assemble = ptxas.assemble
_NUMBERS = itertools.count()


@lru_cache
def _without_files(ptx: str, flags: str, arch: str) -> dict[str, ptxas.KernelResources]:
    return _assemble(ptx, flags, arch)


def _assemble_without_files(ptx: str, flags: str, arch: str) -> dict[str, ptxas.KernelResources]:
    """Run ptxas once for PTX that differs only in names of files."""
    return _without_files(re.sub(r"^\s*\.(file|loc)\b.*", "", ptx, flags=re.MULTILINE), flags, arch)


@pytest.fixture(autouse=True)
def cache_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compiler, "compile_source", _compile_once)
    monkeypatch.setattr(kernel_counts, "compile_source", _compile_once)
    monkeypatch.setattr(ptxas, "assemble", _assemble_without_files)
    monkeypatch.setattr(compilations, "query_layout", lambda *recipe: None)  # saves a call of nvcc each time


@pytest.fixture(autouse=True)
def _cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache folder of its own, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache{next(_NUMBERS)}"))


@pytest.fixture
def arrays() -> Arrays:
    return Arrays()
