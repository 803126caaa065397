"""Sources of kernels: preludes, include folders, and lines of headers."""

from pathlib import Path
from typing import Any

import pytest

from kernelwatch import Kernel, outputs
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.errors import CompileError, UnknownKernelError
from kernelwatch.kernel.sources import KernelSource
from ptxcount.ptx.parser import parse_cached

HEADER = "#pragma once\n__global__ void f(real* x) { x[threadIdx.x] = N; }\n"
FILES = {"k.cuh": HEADER, "inc/real.h": "using real = float;\n", "inc/n.h": "#define N 4\n"}


def _kernel(**options: Any) -> Kernel:
    return Kernel("f", [outputs("x", "n", "float32")], 32, over=("n",), file="k.cuh", **options)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {"prelude": "using real = float;\n#define N 4"},
        {"prelude": "using real = {T};", "options": ["-DN=4"]},
        {"options": ["-include", "inc/real.h", "-include=inc/n.h"]},
        {"options": ["-I", "inc", "-DN=4"], "prelude": '#include "real.h"'},
        {"options": ["-Iinc", "-include", "inc/real.h", "-DN=4"]},
        {"include": ["inc"], "options": ["-include", "cuda_fp16.h", "-DN=4"], "prelude": "#include <real.h>"},
    ],
)
def test_header_compiles_with_a_prelude(options: dict[str, Any], checkout: Path) -> None:
    """The kernel is in line 2 of the header, whatever comes before the header."""
    kernel = _kernel(**options)
    text = kernel.compile_ptx("float32", arch="sm_90")
    assert ".loc\t1 2 " in text
    assert kernel.load_source("float32", "sm_90").make_line_reader()(kernel.file) == HEADER.splitlines()
    full_text = kernel.load_source("float32", "sm_90").full_text()
    assert ("using real = float;" in full_text, HEADER in full_text) == (True, True)


def test_missing_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names asv's folder of the project, but not CHECKOUT's, which is temporary."""
    places = []
    for name, folder in ((CHECKOUT, tmp_path / "gone"), ("ASV_BUILD_DIR", tmp_path)):
        monkeypatch.delenv(CHECKOUT, raising=False)
        monkeypatch.setenv(name, str(folder))
        with pytest.raises(
            UnknownKernelError, match=r"^there is no file k\.cuh in the .*; correct file= of Kernel$"
        ) as caught:
            _kernel().load_source("float32", "sm_90")
        places.append(str(caught.value).partition(" or in ")[2].removesuffix("; correct file= of Kernel"))
    assert places == ["the measured commit", str(tmp_path)]


@pytest.mark.parametrize(
    "options",
    [{"prelude": "\ufeffusing real = float;"}, {"prelude": '#include "real.h"'}, {}],
    ids=["prelude begins with mark", "include in prelude", "include in file"],
)
def test_byte_order_marks_compile(options: dict[str, Any], checkout: Path) -> None:
    for name in ("k.cuh", "inc/real.h"):
        (checkout / name).write_text("\ufeff" + FILES[name], encoding="utf-8")
    text = '#include "inc/real.h"\n' + (checkout / "k.cuh").read_text(encoding="utf-8")
    (checkout / "k.cuh").write_text(text if not options else text.partition("\n")[2], encoding="utf-8")
    assert _kernel(include=["inc"], options=["-DN=4"], **options).compile_ptx("float32", arch="sm_90")


def test_include_folders_of_package_and_repository(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = checkout / "site" / "imaging_of_a_test"
    for folder in (package, package / "own"):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "k.cu").write_text('#include "n4.h"\n#include "real.h"\n' + HEADER)
    (package / "own" / "n4.h").write_text("#define N 4\n")
    monkeypatch.syspath_prepend(str(package.parent))
    array = [outputs("x", "n", "float32")]
    kernel = Kernel("f", array, 32, over=("n",), file=f"{package.name}/k.cu", include=[f"{package.name}/own", "inc"])
    assert kernel.compile_ptx("float32", arch="sm_90")


def test_prelude_does_not_shift_lines_of_errors(checkout: Path) -> None:
    with pytest.raises(CompileError, match=r"^k\.cuh\(2\): error"):
        _kernel(prelude="using real = float;\n\n\n").compile_ptx("float32", arch="sm_90")


def test_lines_of_a_header_are_read_from_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PTX of the second checkout is cached, with paths of the first, whose header is gone."""
    shown = []
    for name in ("one", "two"):
        (tmp_path / name / "inc").mkdir(parents=True)
        (tmp_path / name / "k.cuh").write_text('#include "inc/f.cuh"\n')
        (tmp_path / name / "inc" / "f.cuh").write_text(f"// {tmp_path}\n{HEADER}")
        monkeypatch.setenv(CHECKOUT, str(tmp_path / name))
        kernel = _kernel(prelude="using real = float;", options=["-DN=5"])
        files = parse_cached(kernel.compile_ptx("float32", arch="sm_90")).files.values()
        (file,) = (path for path in files if "f.cuh" in path)
        shown.append((kernel.load_source("float32", "sm_90").make_line_reader()(file) or ["nothing"])[-1])
        (tmp_path / name / "inc" / "f.cuh").unlink()
    assert shown == [HEADER.splitlines()[-1]] * 2


def test_only_files_of_the_checkout_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "now" / "imaging").mkdir(parents=True)
    (tmp_path / "now" / "imaging" / "kernels.py").write_text("import triton\n")
    (tmp_path / "now" / "other.py").write_text("no\n")
    monkeypatch.setenv(CHECKOUT, str(tmp_path / "now"))
    (tmp_path / "secret.py").write_text("secret\n")
    (tmp_path / "now" / "imaging" / "link.py").symlink_to(tmp_path / "secret.py")
    files = ("imaging/kernels.py", "imaging/lost.py", "other.py", "imaging/link.py")
    names = [f"{tmp_path}/gone/{name}" for name in files]
    text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    text += "".join(f'.file {number} "{name}"\n' for number, name in enumerate(names, 1))
    read_lines = KernelSource(text, is_ptx=True).make_line_reader()
    assert [read_lines(name) for name in [*names, "/etc/hostname"]] == [["import triton"], *[None] * 4]
