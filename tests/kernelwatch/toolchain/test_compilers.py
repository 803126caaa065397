"""Compilation in two steps, to PTX and to a cubin, and the cache of both."""

import itertools
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sweeps import FLAG_SETS, MOVED
from gpu_kernels import KERNELS
from kernelwatch.errors import NoDeviceError
from kernelwatch.kernel import load_function
from kernelwatch.kernel.launch import split_flags
from kernelwatch.toolchain import build, cache, nvcc, nvcc_call, resources
from kernelwatch.toolchain.nvcc_call import NvccOutput


@pytest.mark.parametrize(
    ("name", "dtype", "flags", "arch"),
    [
        ("stride_copy", "complex128", "-Xptxas -O3", "sm_80"),
        ("transpose_read_write_coalesced", "int8", "-Xptxas -O0", "sm_90"),
        ("transpose_write_coalesced", "float16", "-Xptxas -dlcm=cg", "sm_100"),
        ("offset_copy", "float64", "-use_fast_math --threads 2 -Xptxas --warn-on-spills", "sm_90a"),
    ],
)
def test_two_steps_equal_one_call_of_nvcc(name: str, dtype: str, flags: str, arch: str, tmp_path: Path) -> None:
    kernel = KERNELS[name]
    (tmp_path / "kernel.cu").write_text(kernel.load_source("float32", "sm_90").text, encoding="utf-8")

    def call_nvcc(target: str, *options: str) -> tuple[bytes, str]:
        command_options = (*split_flags(flags), *kernel.nvcc_options(dtype), *options, "-arch", arch, "kernel.cu")
        command = [str(nvcc.find_nvcc()), f"--{target}", *command_options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return (tmp_path / f"kernel.{target}").read_bytes(), done.stdout + done.stderr

    compiled = kernel.compile_cubin(dtype, flags, arch=arch)
    data, messages = call_nvcc("cubin", "-e", name, "-Xptxas", "-v")
    assert compiled == build.Cubin(name, data, resources.parse_resources(messages, name))
    from_library, from_nvcc = kernel.compile_ptx(dtype, flags, arch=arch), call_nvcc("ptx", "-lineinfo")[0].decode()
    assert from_library == from_nvcc.replace(str(tmp_path / "kernel.cu"), kernel.file)


def test_wrapper_script_selects_the_ptxas_of_nvcc(tmp_path: Path) -> None:
    scripts = {"nvcc": f'exec {nvcc.find_nvcc()} "$@"', "ptxas": "exit 1"}
    for name, command in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    ptx = KERNELS["offset_copy"].compile_ptx("float32", arch="sm_90")
    directly, through_script = (
        nvcc_call.assemble_with_ptxas("offset_copy", path, (), "sm_90", ptx)
        for path in (nvcc.find_nvcc(), tmp_path / "nvcc")
    )
    assert through_script == directly


@pytest.mark.parametrize(
    ("option", "place"),
    [
        *((option, "words") for option in ("-O3", "-lineinfo", "--generate-line-info", "-G", "--device-debug")),
        ("-lineinfo", "file"),
        ("-lineinfo", "NVCC_APPEND_FLAGS"),
    ],
)
def test_ptx_is_that_of_nvcc_with_the_same_options(
    option: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lines, nvcc writes the names of inlined functions, and a label at the end of libdevice's functions."""
    text = """
    __device__ __noinline__ float halve(float x) { return x / 2; }
    __device__ __forceinline__ double raise(double x) { return pow(x, 1.5); }
    template <typename T> __global__ void raise_halves(T *x) { x[threadIdx.x] = raise(halve(x[threadIdx.x])); }
    template __global__ void raise_halves<float>(float *);
    template __global__ void raise_halves<double>(double *);
    """
    (tmp_path / "options").write_text(option, encoding="utf-8")
    options = {"words": [option], "file": ["-optf", str(tmp_path / "options")]}.get(place, [])
    if not options:
        monkeypatch.setenv(place, option)
    (tmp_path / "kernel.cu").write_text(text, encoding="utf-8")
    command = [str(nvcc.find_nvcc()), "--ptx", *options, "-arch", "sm_90", "kernel.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)
    from_nvcc = (tmp_path / "kernel.ptx").read_text(encoding="utf-8")
    from_library = build.compile_to_ptx(text, options, arch="sm_90")
    # Paths follow the code.
    assert from_library.partition("\t.file")[0] == from_nvcc.partition("\t.file")[0]
    assert (".file" in from_library) == (".file" in from_nvcc) == (option != "-O3")


def test_kernels_share_the_ptx_of_a_source(empty_cache: Path) -> None:
    KERNELS["transpose_read_coalesced"].compile_cubin("float32", "-Xptxas -O3", arch="sm_90")
    for dtype, arch in (("float32", "sm_90"), ("int8", "sm_90"), ("int8", "sm_80")):
        KERNELS["transpose_write_coalesced"].compile_cubin(dtype, "-Xptxas -O0", arch=arch)
    assert len([*empty_cache.rglob("*.json")]) == 3 + 4  # PTX of three pairs of dtype and arch, and four cubins


@pytest.mark.filterwarnings("ignore:nvcc on .*Too big maxrregcount")  # from the step that makes PTX
def test_flags_of_environment_change_cubin(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    kernel, how = KERNELS["transpose_read_write_coalesced"], ("complex128", "-Xptxas -O0")
    plain = kernel.compile_cubin(*how, arch="sm_90").resources.registers
    for variable in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
        monkeypatch.setenv(variable, "-maxrregcount=24")
        assert kernel.compile_cubin(*how, arch="sm_90").resources.registers == 24 != plain
        monkeypatch.delenv(variable)
        assert kernel.compile_cubin(*how, arch="sm_90").resources.registers == plain


def _change_entry(path: Path, **fields: object) -> None:
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in {**entry, **fields}.items() if value is not None}))


def _another_release(path: Path) -> None:
    other_key = cache.make_key("c")
    cache.lookup(other_key, lambda: NvccOutput(b"other", "said"))
    path.write_bytes((path.parents[1] / other_key[:2] / f"{other_key}.json").read_bytes())


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


#: Damage of a cache entry with the data "code" and the messages "said".
DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "another type": lambda path: path.write_bytes(b"[]"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
    "nested": lambda path: path.write_bytes(b"[" * 200_000),
    "messages": lambda path: _change_entry(path, messages="Used 18"),
    "messages of another type": lambda path: _change_entry(path, messages=[["said"]]),
    "data": lambda path: _change_entry(path, data="AAAA"),
    "written by an older commit": lambda path: _change_entry(path, digest=None),
    "of another kernel": _another_release,
    "pipe": _pipe,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_entry_is_compiled_again(damage: Callable[[Path], object], empty_cache: Path) -> None:
    calls: list[int] = []

    def make() -> NvccOutput:
        calls.append(1)
        return NvccOutput(b"code", "said")

    name = cache.make_key("a", "b")
    assert cache.lookup(name, make) == cache.lookup(name, make)
    assert len(calls) == 1
    path = empty_cache / name[:2] / f"{name}.json"
    assert [*empty_cache.rglob("*.json")] == [path], "a fleet copies files from this folder"
    damage(path)
    assert cache.lookup(name, make) == NvccOutput(b"code", "said")
    assert len(calls) == 2
    assert cache.lookup(name, make).data == b"code"
    assert len(calls) == 2


def test_cache_keys_are_unambiguous() -> None:
    assert cache.make_key("ab", "c") != cache.make_key("a", "bc")


def _list_inputs() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return pairs of source and options for nvcc, by name, with each source and each set of options at least once."""
    inputs: dict[str, tuple[str, tuple[str, ...]]] = {}
    seen: set[str | tuple[str, ...]] = set()
    for name, kernel in KERNELS.items():
        for dtype, flags in itertools.product(kernel.dtypes or MOVED, FLAG_SETS):
            text = kernel.load_source("float32", "sm_90").text
            options = tuple(build.drop_ptxas_options((*split_flags(flags), *kernel.nvcc_options(dtype))))
            if not seen.issuperset((text, options)):
                inputs[f"{name}-{dtype}"] = text, options
                seen |= {text, options}
    return inputs


@pytest.mark.pycuda
@pytest.mark.parametrize(("text", "options"), _list_inputs().values(), ids=_list_inputs())
def test_pycuda_and_nvcc_agree(text: str, options: tuple[str, ...]) -> None:
    arguments: Any = (nvcc.find_nvcc(), options, "sm_90", text)
    with_pycuda, with_nvcc = nvcc_call.compile_with_pycuda(*arguments), nvcc_call.compile_with_nvcc(*arguments)
    assert with_pycuda.data == with_nvcc.data
    assert resources.extract_remarks(with_pycuda.messages) == resources.extract_remarks(with_nvcc.messages) == ""


@pytest.mark.pycuda
def test_installed_pycuda_compiles_ptx(monkeypatch: pytest.MonkeyPatch, empty_cache: object) -> None:
    monkeypatch.setattr(nvcc_call, "compile_with_nvcc", pytest.fail)
    assert KERNELS["offset_copy"].compile_cubin("float32", arch="sm_90").data
    assert KERNELS["offset_copy"].compile_ptx("float32", arch="sm_90")


@pytest.mark.pycuda
def test_driver_without_a_device_is_an_error() -> None:
    import pycuda.driver as cuda

    try:
        cuda.init()
    except cuda.Error:
        with pytest.raises(NoDeviceError, match=r"the CUDA driver does not start: .*no CUDA-capable device"):
            load_function.current_context()
    else:
        pytest.skip("there is a device")
