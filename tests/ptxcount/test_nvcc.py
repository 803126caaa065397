"""The search for nvcc, its errors, its time limit, file names with special characters; resources by ptxas."""

import importlib.machinery
import importlib.util
import re
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ptxcount.source import cuda_compiler
from ptxcount.source.ptxas import list_machine_accesses
from ptxcount.util.errors import CompileError, NvccNotFoundError
from tests.ptxcount import sources
from tests.ptxcount.sources import compile_to_ptx

ADVICE = r"run: pip install 'cuda-toolkit\[nvcc,cudart,crt,nvvm,cccl\]==\d+\.\d+\.\d+', or set the variable NVCC"


def _executable(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Write a fake nvcc for each step of the search; return the files by step."""
    wheels = tmp_path / "site-packages" / "nvidia"
    spec = importlib.machinery.ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(wheels)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    compilers = {"NVCC": tmp_path / "own" / "nvcc", "PATH": tmp_path / "bin" / "nvcc"}
    compilers["wheel"] = wheels / "cu13" / "bin" / "nvcc"
    ignored = [wheels / name / "bin" / "nvcc" for name in ("cu9", "cu10", "cu11", "cu12", "other")]
    for path in (*compilers.values(), *ignored):
        _executable(path)
    monkeypatch.setenv("NVCC", str(compilers["NVCC"]))
    monkeypatch.setenv("PATH", str(compilers["PATH"].parent))
    return compilers


def test_search_for_nvcc_in_order(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda_compiler.find_nvcc() == places["NVCC"]
    monkeypatch.delenv("NVCC")
    assert cuda_compiler.find_nvcc() == places["wheel"]
    for older in (12, 11, 10, 9):
        (places["wheel"].parents[2] / f"cu{older + 1}" / "bin" / "nvcc").unlink()
        assert cuda_compiler.find_nvcc() == places["wheel"].parents[2] / f"cu{older}" / "bin" / "nvcc"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cuda_compiler.find_nvcc() == places["PATH"]
    places["PATH"].unlink()
    message = f"^NVCC is not set, and neither this Python environment nor PATH has nvcc; {ADVICE}"
    with pytest.raises(NvccNotFoundError, match=message):
        cuda_compiler.compile_source("")


def test_advised_wheel_is_that_of_the_extra() -> None:
    """The error cannot advise ``ptxcount[nvcc]``, because PyPI has no ptxcount."""
    project = sources.FOLDER.parents[1] / "ptxcount" / "pyproject.toml"
    assert cuda_compiler.WHEEL in project.read_text(encoding="utf-8")


def test_variable_without_a_compiler_is_refused(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    places["NVCC"].unlink()
    with pytest.raises(NvccNotFoundError, match=f"^NVCC={places['NVCC']} is not an executable; set it"):
        cuda_compiler.compile_source("")


def test_hanging_compiler_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"sleep 60 &\necho $! > {tmp_path}/child\nsleep 60"
    monkeypatch.setenv("NVCC", str(_executable(tmp_path / "nvcc", script)))
    monkeypatch.setenv("NVCC_TIME_LIMIT", "1")
    with pytest.raises(CompileError, match=r"^nvcc took longer than 1 s: .*--ptx"):
        cuda_compiler.compile_source("")
    child = Path("/proc", (tmp_path / "child").read_text().strip())
    end = time.monotonic() + 10  # by then, the child is gone or a zombie
    while child.exists() and "Z" not in (child / "stat").read_text().split()[2] and time.monotonic() < end:
        time.sleep(0.01)
    assert time.monotonic() < end


def test_foreign_executable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvcc may be for another machine."""
    broken = _executable(tmp_path / "nvcc")
    broken.write_bytes(b"\x7fELF")
    monkeypatch.setenv("NVCC", str(broken))
    with pytest.raises(CompileError, match=rf"(?s)^nvcc failed: {broken} .*{broken}"):
        cuda_compiler.compile_source("")


def test_invalid_characters_are_replaced() -> None:
    assert ".version" in cuda_compiler.compile_source("// \ud800\n").ptx


def test_error_has_the_text_of_nvcc() -> None:
    with pytest.raises(CompileError, match=r'(?s)^nvcc failed: .*\nsource\.cu\(1\): error: .*"nothing" is undefined'):
        cuda_compiler.compile_source("nothing x;")


#: File names with a meaning to a shell or to nvcc.
NAMES = ["a$(touch X)`touch X`;touch X;.cu", "-x.cu", "d$(touch X)`touch X`/a b'.cu", "rule"]
SOURCE = """\
#include "beside.h"
template <typename T> __global__ void k(T* x) { x[threadIdx.x] += BESIDE; }
"""


@pytest.mark.parametrize("name", NAMES)
def test_file_name_is_no_command(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path(name)
    source.parent.mkdir(exist_ok=True)
    source.with_name("beside.h").write_text("#define BESIDE 1\n")
    source.write_text(SOURCE)
    compilation = cuda_compiler.compile_source(source, instances=["k<float>"])
    assert f'.file\t1 "{tmp_path / source}"' in compilation.ptx
    assert compilation.files[0] == source
    headers = [file.resolve() for file in compilation.files if file.name == "beside.h"]
    assert headers == [(tmp_path / source).with_name("beside.h")]
    source.write_text("\nnothing x;")
    with pytest.raises(CompileError, match=rf"(?s)^nvcc failed: .*\n{re.escape(name)}\(2\): error: ") as raised:
        cuda_compiler.compile_source(source)
    assert "ptxcount-" not in str(raised.value)  # the temporary folder
    assert not list(tmp_path.rglob("X"))


@pytest.mark.parametrize("flags", ["-I'd`touch X`'", "-I 'd$(touch X)'", "-I'd\\$(touch X)'"])
def test_folder_name_is_no_command(flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CompileError, match=r"nvcc passes .* to a shell, which .*; remove it from --flags, or rename"):
        cuda_compiler.compile_source("", flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ['a".cu', "a\nb.cu"])
def test_unquotable_name_is_refused(name: str) -> None:
    with pytest.raises(CompileError, match="rename it"):
        cuda_compiler.compile_source(Path(name))


def test_source_without_dependencies_is_the_only_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'while [ "$1" != -o ]; do shift; done; echo > "$2"'
    monkeypatch.setenv("NVCC", str(_executable(tmp_path / "nvcc", script)))
    assert cuda_compiler.compile_source(Path("kernel.cu")).files == [Path("kernel.cu")]


#: Value of NVCC_TIME_LIMIT, and its seconds; None if invalid.
LIMITS = [
    ("", 300), ("2.5", 2.5),
    *((text, None) for text in ("0", "0.0", "12345678", "x", "-1", "nan", "1e9", "inf", "9" * 5000)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "limit"), LIMITS)
def test_variable_sets_the_time_limit(text: str, limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_TIME_LIMIT", text)
    error = pytest.raises(CompileError, match=r"^NVCC_TIME_LIMIT is '.*'; it must be above 0 and below 1000000 seconds")
    with error if limit is None else nullcontext():
        assert cuda_compiler.find_time_limit() == limit


def test_register_limit_makes_ptxas_spill() -> None:
    names = [f"a{n}" for n in range(48)]
    loads = "".join(f"float {name} = x[{n} * 32]; " for n, name in enumerate(names))
    stores = "".join(f"x[{n} * 32 + 1] = {name}; " for n, name in enumerate(reversed(names)))
    ptx = compile_to_ptx(f'extern "C" __global__ void k(float* x) {{ {loads}__syncthreads(); {stores}}}')
    free, limited = (list_machine_accesses(ptx, "k", flags, "sm_90") for flags in ("", "--maxrregcount=24"))
    rows = [(access["space"], access["kind"], access["bytes"]) for access in free]
    assert rows == [("stack", "frame", 0), ("spill", "store", 0), ("spill", "load", 0)]
    _, store, _ = limited
    assert store["bytes"] > 0


@pytest.mark.parametrize(("is_ptx", "arch"), [(True, "compute_90"), (False, "sm_90")])
def test_resources_without_machine_code_are_unknown(is_ptx: bool, arch: str) -> None:
    ptx = compile_to_ptx('extern "C" __global__ void k() {}') if is_ptx else "no PTX"
    assert list_machine_accesses(ptx, "k", "", arch) == []


#: Functions with arrays of 40 and 80 integers, of which the second calls the first, and a function that spills.
_FUNCTIONS = """
__device__ __noinline__ int small(const int* g, int n) {
    int a[40]; for (int i = 0; i < 40; i++) a[i] = g[i]; return a[n];
}
__device__ __noinline__ int large(const int* g, int n) {
    int a[80]; for (int i = 0; i < 80; i++) a[i] = g[i]; return a[n] + small(g, n + 1);
}
__device__ __noinline__ float spills(const float* g, int n) {
    float a[48], s = 0; for (int i = 0; i < 48; i++) a[i] = g[threadIdx.x + i * 32];
    for (int j = 0; j < n; j++) for (int i = 0; i < 48; i++) a[i] = a[i] * a[(i + 7) % 48] + a[(i + 1) % 48];
    for (int i = 0; i < 48; i++) s += a[i]; return s;
}
extern "C" __global__ void alone(int* o, const int* g, int n) { o[0] = g[n]; }
extern "C" __global__ void shallow(int* o, const int* g, int n) { o[0] = small(g, n); }
extern "C" __global__ void deep(int* o, const int* g, int n) { o[0] = large(g, n); }
extern "C" __global__ void __launch_bounds__(1024, 2) full(float* o, const float* g, int n) { o[0] = spills(g, n); }
"""


@pytest.mark.parametrize(("entry", "least", "most", "spills"), [
    ("alone", 0, 0, False), ("shallow", 40 * 4, 300, False), ("deep", (80 + 40) * 4, 700, False),
    ("full", 100, 300, True),
])  # fmt: skip
def test_kernel_has_frames_and_spills_of_functions(entry: str, least: int, most: int, spills: bool) -> None:
    accesses = list_machine_accesses(compile_to_ptx(_FUNCTIONS), entry, "", "sm_90")
    frame, stores, loads = (access["bytes"] for access in accesses)
    assert least <= frame <= most
    assert (stores > 100, loads > 100) == (spills, spills)
