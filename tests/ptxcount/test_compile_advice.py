"""Advice on compiler errors: the wheel or folder of a header, another release of CUDA or architecture."""

import re
import shlex
import subprocess
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from ptxcount.command_line import main
from ptxcount.source import cuda_compiler
from ptxcount.source.compile_advice import HEADERS, advise
from ptxcount.util.errors import CompileError, NvccNotFoundError

#: Header -> its extra of the package cuda-toolkit.
EXTRAS = {
    "curand_kernel.h": "curand", "cublas_v2.h": "cublas", "cusparse.h": "cusparse", "cusolverDn.h": "cusolver",
    "cufftXt.h": "cufft", "nvtx3/nvToolsExt.h": "nvtx",
}  # fmt: skip
#: Missing header -> wheel, and the argument of ``pip install``.
WHEELS = {
    **{header: (f"nvidia-{extra}", f"cuda-toolkit[{extra}]==13.0.2") for header, extra in EXTRAS.items()},
    "cub/nowhere.cuh": ("nvidia-cuda-cccl", "cuda-toolkit[cccl]==13.0.2"),
    "cudnn.h": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu13"), "nccl.h": ("nvidia-nccl-cu13", "nvidia-nccl-cu13"),
    "torch/extension.h": ("torch", "torch"), "c10/cuda/CUDAGuard.h": ("torch", "torch"),
}  # fmt: skip


@pytest.mark.parametrize("header", WHEELS)
def test_advice_names_the_wheel_of_a_header(header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wheel, words = WHEELS[header]
    text = advise(f"k.cu:1:10: fatal error: {header}: No such file or directory", tmp_path / "k.cu")
    assert text == f"{header} comes with the wheel {wheel}; run: pip install '{words}'"
    assert sum(re.fullmatch(pattern, header) is not None for pattern in HEADERS) == 1, "one pattern fits"


@pytest.mark.parametrize(("included", "folder"), [
    ("<beside.h>", "src"), ("<deep/in.h>", "include"), ('"far.h"', "third party"), ("<twice.h>", "src/own"),
])  # fmt: skip
def test_advice_names_the_nearest_folder(
    included: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    for name in (f"{folder}/{included[1:-1]}", "other/twice.h", ".hidden/src/beside.h", "src/k.cu"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("#define N 4\n")
    Path("src/k.cu").write_text(f"#include {included}\n__global__ void k(float* x) {{ *x = N; }}")
    assert main(["src/k.cu"]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    option = shlex.join([f"-I{folder}"])
    assert message.endswith(f" is in {folder}; add {option}")
    assert main(["src/k.cu", *shlex.split(option)]) == 0


@pytest.mark.parametrize("folder", ["torch/include", "torch/include/torch/csrc/api/include", "nvidia/cu13/include"])
def test_advice_names_a_folder_of_packages(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / folder / "own" / "all.h"
    header.parent.mkdir(parents=True)
    header.touch()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)]))
    text = advise("k.cu:1:10: fatal error: own/all.h: No such file or directory", None)
    assert text == f"own/all.h is in {tmp_path / folder}; add -I{tmp_path / folder}"


def test_advice_names_the_folder_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sysconfig.get_path("include")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    if Path(folder, "Python.h").is_file():
        text = advise("x.h:1:10: fatal error: Python.h: No such file or directory", None)
        assert text == f"Python.h is in {folder}; add -I{folder}"


def test_unknown_header_has_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").write_text("#include <nowhere.h>\n")
    assert main([str(tmp_path / "k.cu")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("add its folder: -IFOLDER")


def test_unknown_architecture_has_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").touch()
    assert main([str(tmp_path / "k.cu"), "--arch", "sm_1"]) == 1
    advice = "this nvcc does not compile for sm_1; give an architecture that nvcc --list-gpu-code prints\n"
    assert capsys.readouterr().err.endswith(advice)


def test_removed_names_have_advice() -> None:
    error = 'k.cu(3): error: namespace "{}" has no member "{}"'
    assert advise(error.format("cub", "Max"), None).startswith("this release of CUDA has no cub::Max; https://")
    assert "set NVCC to its nvcc" in advise(error.format("thrust", "unary_function"), None)
    assert not advise(error.format("own", "Max"), None)


def test_release_needs_a_given_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only kernelwatch installs the release in ``CUDA_TOOLKIT``."""
    monkeypatch.setenv("NVCC", str(cuda_compiler.find_nvcc()))
    monkeypatch.setenv("CUDA_TOOLKIT", "13.5.0")
    assert cuda_compiler.compile_source("").ptx
    monkeypatch.delenv("NVCC")
    with pytest.raises(NvccNotFoundError, match=r"^CUDA_TOOLKIT is 13\.5\.0; .*set NVCC to the path of that nvcc"):
        cuda_compiler.compile_source("")


def test_missing_header_of_a_text_has_advice() -> None:
    with pytest.raises(CompileError, match=r"\ncublas_v2\.h (comes with the wheel nvidia-cublas; run|is in )"):
        cuda_compiler.compile_source("#include <cublas_v2.h>")


@pytest.mark.parametrize("is_text", [False, True])
def test_error_of_ptxas_names_its_line(is_text: bool, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text('\n__global__ void k() {\n  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");\n}\n')
    with pytest.raises(CompileError) as caught:
        cuda_compiler.compile_source(source.read_text() if is_text else source)
    *_, error, _, advice = str(caught.value).splitlines()
    assert error.startswith(f"{'source.cu' if is_text else source}:3: ptxas error   : Instruction 'setmaxnreg.dec'")
    assert advice.endswith("--arch sm_90a")
    cuda_compiler.compile_source(source, arch="sm_90a")
