"""Compilations and arrays that tests of `ptxcount` share."""

import hashlib
import itertools
import os
import pickle
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

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
_assemble = ptxas.assemble
_NUMBERS = itertools.count()
_Outcome = TypeVar("_Outcome")


def _load_or_compute(folder: Path, key: object, compute: Callable[[], _Outcome]) -> _Outcome:
    """Load the outcome of a key from a folder; if it is not there yet, compute and store it."""
    file = folder / hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()
    if file.is_file():
        outcome: _Outcome = pickle.loads(file.read_bytes())
        return outcome
    outcome = compute()
    unfinished = folder / f"{file.name}.{os.getpid()}"
    unfinished.write_bytes(pickle.dumps(outcome))
    unfinished.rename(file)
    return outcome


def _compile_once(
    cache: Path, source: Path | str, flags: str = "", arch: str = ARCH, instances: Sequence[str] = ()
) -> Compilation:
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

    def compile_or_fail() -> tuple[Compilation | CompileError, Path]:
        try:
            return _compile(source, flags, arch, instances), folder
        except CompileError as error:
            return error, folder

    compilation, first_folder = _load_or_compute(cache, key, compile_or_fail)
    if isinstance(compilation, CompileError):
        raise CompileError(str(compilation).replace(str(first_folder), str(folder)))
    if folder == first_folder:
        return compilation
    moved = [Path(str(file).replace(str(first_folder), str(folder))) for file in compilation.files]
    return Compilation(compilation.ptx.replace(str(first_folder), str(folder)), moved)


def _assemble_once(cache: Path, ptx: str, flags: str, arch: str) -> dict[str, ptxas.KernelResources]:
    """Run ptxas once for PTX that differs only in names of files."""
    text = re.sub(r"^\s*\.(file|loc)\b.*", "", ptx, flags=re.MULTILINE)
    return _load_or_compute(cache, (text, flags, arch), lambda: _assemble(text, flags, arch))


@pytest.fixture(autouse=True)
def cache_compilations(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run nvcc and ptxas once per input: xdist's processes share a folder of outcomes."""
    folder = tmp_path_factory.getbasetemp()
    cache = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "compilations"
    cache.mkdir(exist_ok=True)
    compile_once = partial(_compile_once, cache)
    monkeypatch.setattr(cuda_compiler, "compile_source", compile_once)
    monkeypatch.setattr(kernel_counts, "compile_source", compile_once)
    monkeypatch.setattr(ptxas, "assemble", partial(_assemble_once, cache))
    monkeypatch.setattr(compilations, "query_layout", lambda *recipe: None)  # saves a call of nvcc each time


@pytest.fixture(autouse=True)
def _cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a cache folder of its own, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache{next(_NUMBERS)}"))


@pytest.fixture
def arrays() -> Arrays:
    return Arrays()


@pytest.fixture(scope="module")
def nvdisasm() -> Path:
    """Find the disassembler; skip the test without it."""
    path = Path(cuda_compiler.find_nvcc()).resolve().with_name("nvdisasm")
    if not path.exists():
        pytest.skip(f"no {path}: pip install -r requirements/dev.txt")
    return path
