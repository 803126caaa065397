"""Compiling without PyCUDA: nvcc's two steps, of which kernels share the longer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpu_kernels import catalog
from kernelwatch.kernel.launch import words
from kernelwatch.toolchain import nvcc, nvcc_call, resources
from kernelwatch.toolchain.nvcc_call import NvccOutput


@pytest.mark.parametrize(
    ("kernel", "dtype", "flag_set", "arch"),
    [
        ("stride_copy", "complex128", "-Xptxas -O3", "sm_80"),
        ("transpose_read_write_coalesced", "int8", "-Xptxas -O0", "sm_90"),
        ("transpose_write_coalesced", "float16", "-Xptxas -dlcm=cg", "sm_100"),
    ],
)
def test_two_steps_make_what_one_makes(kernel: str, dtype: str, flag_set: str, arch: str, tmp_path: Path) -> None:
    """PTX first and a cubin of it are what one call of nvcc each makes, to the byte; the cubin's report too."""
    source = catalog.get(kernel).source_text()
    (tmp_path / "kernel.cu").write_text(source, encoding="utf-8")
    given = [*words(flag_set), *catalog.get(kernel).options(dtype)]
    for target, options in (("cubin", [*given, "-e", kernel, "-Xptxas", "-v"]), ("ptx", [*given, "-lineinfo"])):
        command = [str(nvcc.find_nvcc()), f"--{target}", *options, "-arch", arch, "kernel.cu"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        made = nvcc_call.directly(nvcc.find_nvcc(), target, options, arch, source)
        assert _anywhere(made.data) == _anywhere((tmp_path / f"kernel.{target}").read_bytes())
        if target == "cubin":
            assert resources.parse(made.messages, kernel) == resources.parse(done.stdout + done.stderr, kernel)


def _anywhere(made: bytes) -> bytes:
    """PTX names the folder that it was made in."""
    return re.sub(rb'\.file\t1 ".*/kernel\.cu"', b"", made)


def test_the_longer_step_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a source and flag sets have their PTX in common; another dtype or architecture has another."""
    made: list[str] = []

    def run(_: Path, target: str, __: object, arch: str, name: str, ___: str) -> NvccOutput:
        made.append(f"{name} to {target}, {arch}")
        return NvccOutput(b"code", "said ")

    monkeypatch.setattr(nvcc_call, "run", run)
    nvcc_call._front_end.cache_clear()
    for options, arch in (
        (("-Xptxas", "-O3", "-DELEMENT=float", "-e", "one"), "sm_90"),
        (("-Xptxas", "-O0", "-DELEMENT=float", "-e", "two"), "sm_90"),
        (("-Xptxas", "-O0", "-DELEMENT=char", "-e", "two"), "sm_90"),
        (("-Xptxas", "-O0", "-DELEMENT=char", "-e", "two"), "sm_80"),
    ):
        assert nvcc_call.directly(Path("nvcc"), "cubin", options, arch, "source").messages == "said said "
    nvcc_call._front_end.cache_clear()
    assert [step for step in made if "to ptx" in step] == [f"kernel.cu to ptx, sm_{n}" for n in (90, 90, 80)]
    assert [step for step in made if "to cubin" in step] == [f"kernel.ptx to cubin, sm_{n}" for n in (90, 90, 90, 80)]


def test_direct_and_pycuda_paths_have_the_same_face() -> None:
    """The two ways to call nvcc take the same arguments."""
    names = [call.__code__.co_varnames[: call.__code__.co_argcount] for call in (nvcc_call.directly,)]
    assert names == [nvcc_call.through_pycuda.__code__.co_varnames[: nvcc_call.through_pycuda.__code__.co_argcount]]
