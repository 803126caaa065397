"""Compilation to cubins, with a working or a failing nvcc."""

import io
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from gpu_kernels import KERNELS, MIXED
from kernelwatch import Kernel, outputs
from kernelwatch.config.project_root import CHECKOUT
from kernelwatch.counting import launch_counts
from kernelwatch.errors import CompileError, CompilerWarning, UnknownKernelError
from kernelwatch.instrument import prebuild
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.suite import registry
from kernelwatch.suite.sweep import Sweep
from kernelwatch.toolchain import build, code_hash, nvcc, nvcc_call, resources


def fake_nvcc(folder: Path, body: str) -> Path:
    """Write a script that answers `--version` like nvcc, and otherwise runs `body`; return its path."""
    path = folder / "nvcc"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "release 13.0, {folder}" && exit\n{body}\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("nope", "float32", "-Xptxas -O3", "sm_90"), UnknownKernelError, "there is no kernel 'nope'"),
        (("offset_copy", "float32", "-Xptxas -O3", "sm_10"), CompileError, "nvcc fatal .*'sm_10'"),
        (("offset_copy", "int8", "-Xptxas -O3", 90), CompileError, "arch 90 is not an architecture"),
        (("offset_copy", "float32", "-Xptxas -O3", "volta"), CompileError, "'volta' is not an architecture"),
    ],
)
def test_unknown_names_are_errors(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    kernel, *how, arch = arguments
    with pytest.raises(error, match=message):
        registry.find_kernel(kernel).compile_cubin(*how, arch=arch)


def test_nvcc_is_the_pinned_one() -> None:
    pinned = Path(__file__).parents[3] / "requirements" / "nvcc.txt"
    assert nvcc.WHEEL in pinned.read_text(encoding="utf-8").splitlines()
    assert "NVCC" in os.environ or nvcc.find_release(nvcc.find_nvcc()) == (13, 0)


@pytest.mark.parametrize(
    ("pycuda", "input_pattern", "command"),
    [
        (False, "*.cu", "--ptx -DELEMENT=float"),
        (False, "*.ptx?-e*", "--cubin -Xptxas -O3"),
        pytest.param(True, "*.cu", "--ptx -DELEMENT=float", marks=pytest.mark.pycuda),
    ],
    ids=["front end", "ptxas", "PyCUDA"],
)
def test_error_of_nvcc_is_raised(
    pycuda: bool, input_pattern: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    monkeypatch.setattr(nvcc_call, "can_import_pycuda", lambda: pycuda)
    failing = f'case "$*" in {input_pattern}) echo "kernel.cu(8): error: no such thing" >&2; exit 2;; esac'
    body = f'{failing}; echo ".visible .entry offset_copy() {{}}" > kernel.ptx'
    monkeypatch.setenv("NVCC", str(fake_nvcc(tmp_path, body)))
    with pytest.raises(CompileError, match=rf"nvcc failed: .*{command} .*\n.*no such thing") as raised:
        KERNELS["offset_copy"].compile_cubin("float32", arch="sm_90")
    lines, is_ptxas = str(raised.value).splitlines(), ".ptx" in input_pattern
    if not is_ptxas:  # the kernel's file stands for nvcc's temporary kernel.cu
        assert lines[0] == lines[-1] == "gpu_kernels/kernels/offset_copy.cu(8): error: no such thing"
    assert len(list(empty_cache.rglob("*.json"))) == is_ptxas, "only the PTX for ptxas is cached"


def test_error_for_newer_ptx_names_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    message = "ptxas kernel.ptx, line 5; fatal   : Unsupported .version 9.4; current version is '9.0'"
    monkeypatch.setenv("NVCC", str(fake_nvcc(tmp_path, f'echo "{message}" >&2; exit 2')))
    with pytest.raises(CompileError, match=r"is '9\.0'; CUDA 13\.4 has it: set CUDA_TOOLKIT to that release"):
        build.assemble_cubin(".version 9.4", "k", [], arch="sm_90")


def test_nvcc_warning_is_a_python_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    report = """ptxas info    : Compiling entry function 'offset_copy' for 'sm_90'
ptxas info    : Function properties for offset_copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers"""
    body = f'cat >&2 <<"END"\nkernel.cu(3): warning #177-D: variable was declared but never referenced\n{report}\nEND\n'
    body += "echo '.entry offset_copy() {}' | tee kernel.ptx > kernel.cubin"
    monkeypatch.setenv("NVCC", str(fake_nvcc(tmp_path, body)))
    for _ in range(2):
        with pytest.warns(CompilerWarning, match=r"nvcc on .*offset_copy.cu .*offset_copy.cu\(3\): warning #177-D"):
            KERNELS["offset_copy"].compile_cubin("float32", arch="sm_90")


def test_resources_are_parsed() -> None:
    """They are registers, and spilled, shared and stack bytes. Bytes of called functions are added."""
    with pytest.raises(CompileError, match=r"has no resources of 'offset_copy'; it is:\nhello"):
        resources.parse_resources("hello", "offset_copy")
    text = """
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    24 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 24 bytes cumulative stack size, 4224 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compiling entry function 'calls' for 'sm_90'
ptxas info    : Function properties for calls
    192 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 192 bytes cumulative stack size
ptxas info    : Compile time = 52.061 ms
ptxas info    : Function properties for _Z6spillyPKfi
    8 bytes stack frame, 348 bytes spill stores, 376 bytes spill loads
"""
    assert resources.parse_resources(text, "calls") == resources.Resources(32, 348 + 376, 0, 192 + 8)
    assert resources.parse_resources(text, "one") == resources.Resources(32, 20 + 12, 4224, 24)
    assert resources.parse_resources(text, "two") == resources.Resources(8, 0, 0, 0)
    assert resources.extract_remarks(text) == ""


def test_prebuild_reports_errors(empty_cache: Path) -> None:
    good = ("offset_copy", "float32", "-Xptxas -O3 -DALONE", "sm_90")
    errors = list(prebuild.compile_cubins([good, ("nope", *good[1:]), (*good[:3], "sm_10")]))
    assert errors[0] is None
    assert isinstance(errors[1], UnknownKernelError)
    assert isinstance(errors[2], CompileError)
    assert len(list(empty_cache.rglob("*.json"))) == 2, "not only PTX and cubin are cached"


def test_prebuild_lists_counted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = next(reversed(KERNELS))  # the last one: the others keep their order when it is back
    monkeypatch.delitem(KERNELS, gone)
    monkeypatch.delitem(MIXED, gone)
    counted = [sweep.launch(point) for sweep in registry.current_suite().counted for point in sweep.points()]
    codes = {(launch.kernel, launch.dtype) for launch in counted if launch.kernel != gone}
    flags = {launch.flags for launch in counted}
    cubins = prebuild.list_cubins(["sm_80", "sm_90"])
    assert {cubin_name[:2] for cubin_name in cubins} == codes
    assert len(cubins) == len({*cubins}) == 2 * len(codes) * len(flags)
    assert len([*itertools.groupby(cubins, lambda cubin_name: (*cubin_name[:2], cubin_name[3]))]) == 2 * len(codes), (
        "cubins of one kernel, dtype and architecture are neighbours: they share PTX"
    )


def test_prebuild_lists_uncounted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without counts, the dtypes are those of the kernel's declaration, by default all on the axis."""
    compiled = Sweep("Compiled", "", {"kernel": ("any", "two"), "dtype": ("int8", "float32"), "flags": ("",)})
    kernels = {
        name: Kernel(name, [outputs("out", "n")], 32, over=("n",), text="x", dtypes=dtypes)
        for name, dtypes in {"any": (), "two": ("int8", "int16")}.items()
    }
    suite = registry.Suite(lambda: kernels, timed=(), copy=None, counted=(), compiled=compiled)
    monkeypatch.setattr(registry, "_registered", [suite])
    cubins = prebuild.list_cubins(["sm_90"])
    assert {cubin_name[:2] for cubin_name in cubins} == {("any", "int8"), ("any", "float32"), ("two", "int8")}


def test_sweep_without_dtypes_counts_the_default() -> None:
    sweep = Sweep("Sums", "", {"n": (1,)}, kernel="sums")
    suite = registry.Suite(dict, timed=(), copy=None, counted=(sweep,), compiled=sweep)
    assert suite.dtypes == {"sums": {DTYPE}}


def test_changed_header_changes_ptx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    body = "{ if (threadIdx.x < n) out[threadIdx.x] = VALUE; }"
    (tmp_path / "fill.cu").write_text(f'#include "value.h"\n__global__ void fill(float* out, int n) {body}')
    kernel = Kernel("fill", [outputs("out", "n"), "n"], 32, over=("n",), file="fill.cu")
    for value in (1.0, 2.0):
        (tmp_path / "value.h").write_text(f"#define VALUE {value}\n")
        assert (launch_counts.count_launch(kernel, "float32", n=20).arrays["out"] == value).all()


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return KERNELS["offset_copy"].compile_cubin("float32", arch="sm_90").data


def _section_offset(cubin: bytes, section: str) -> int:
    sections = ELFFile(io.BytesIO(cubin)).iter_sections()
    return next(int(elf_section["sh_offset"]) for elf_section in sections if elf_section.name.startswith(section))


@pytest.mark.parametrize("section", [".text.", ".nv.constant0", ".note.nv.tkinfo", ".nv.info", ".debug_frame"])
def test_code_hash_covers_instructions_and_constants(section: str, cubin: bytes) -> None:
    """Other sections, such as notes that name nvcc, do not change it."""
    changed = bytearray(cubin)
    changed[_section_offset(cubin, section)] ^= 1
    is_changed = code_hash.hash_machine_code(cubin) != code_hash.hash_machine_code(bytes(changed))
    assert is_changed == section.startswith((".text", ".nv.con"))


@pytest.mark.parametrize("written", [b"", b"garbage", b"\x7fELF", b"\x7fELF\2\1\1" + b"\xff" * 200])
def test_output_without_machine_code_is_an_error(written: bytes) -> None:
    message = r"^nvcc's output is not machine code \([^\n]+\); set NVCC to a working nvcc$"
    with pytest.raises(ValueError, match=message):
        code_hash.hash_machine_code(written)
