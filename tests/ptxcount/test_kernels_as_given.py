"""Users' kernels: a single file, templates, structs, variables, PTX, other packages."""

import json
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.cli.argument_words import make_arguments
from ptxcount.command_line import main
from ptxcount.util.errors import LaunchError
from tests.ptxcount.commands import read_output
from tests.ptxcount.sources import compile_to_ptx

SOURCE = """\
#include "point.h"
// __global__ void no(int* comment);
__constant__ float taps[3];
namespace phys {
template <typename T, int N = 2>
__global__ void __launch_bounds__(256) gather(T* __restrict__ out, const T* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * N];
}
}
__global__ void filled(double* out, Point p) { out[threadIdx.y * blockDim.x + threadIdx.x] = p.y * taps[1]; }
"""
POINT = "struct Point { float x; double y; int n[2]; };\n"
GATHER = "--grid 4 --block 256 out=float32[1024] in=float32[4096] n=int32:1024"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "point.h").write_text(POINT)
    (tmp_path / "kernels.cu").write_text(SOURCE)
    return tmp_path / "kernels.cu"


def test_file_lists_kernels_with_commands(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = read_output(capsys, file)
    assert f"{file}: 2 kernels" in out
    assert "phys::gather(T* __restrict__ out, const T* in, int n)  (line 6)" in out
    assert "filled(double* out, Point p)  (line 11)" in out
    command = next(line for line in out.splitlines() if "--entry filled" in line)
    assert "--variable 'taps=float32[3]=ones'" in command
    assert main(shlex.split(command.strip())[1:]) == 0
    command = next(line for line in out.splitlines() if "gather<float, 2>" in line)  # reads every second element
    assert main(shlex.split(command.strip().replace("in=float32[65528]", "in=float32[131072]"))[1:]) == 0


@pytest.mark.parametrize("name", ["gather<float>", "phys::gather<float,2>", "phys::gather< float , 2 >"])
def test_entry_instantiates_a_template(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counted = json.loads(read_output(capsys, file, "--entry", name, *GATHER.split(), "--json"))
    assert counted["load_sectors"] == 2 * counted["store_sectors"] == 256
    assert [(row["line"], row["text"][:17]) for row in counted["lines"]] == [(8, "if (i < n) out[i]")]
    assert counted["distinct_sectors"] == {"read": 256, "written": 128}


def test_other_spelling_selects_the_instance(file: Path) -> None:
    """Mangled names have ``unsigned int`` for ``unsigned``: nvcc resolves the arguments, or refuses them."""
    arrays: list[Any] = [np.zeros(32, np.uint32), np.arange(64, dtype=np.uint32), np.int32(32)]
    assert ptxcount.count(file, "gather<unsigned>", 1, 32, arrays).loads.sectors_per_request == 8
    with pytest.raises(ptxcount.CompileError, match="nothing"):
        ptxcount.count(file, "gather<nothing>", 1, 32, arrays)


def test_struct_and_variable_reach_the_kernel(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "taps.npy", np.array([1, 2, 3], np.float32))
    struct = '{"x": "float32:1", "y": "float64:2.5", "n": ["int32:1", "int32:2"]}'
    words = ["--entry", "filled", "--grid", "1", "--block", "32", "out=float64[32]", f"p={struct}"]
    page = tmp_path / "page.html"
    variable = f"taps=@{tmp_path / 'taps.npy'}"
    assert main([str(file), *words, "--variable", variable, "--html", str(page), "--json"]) == 0
    assert not capsys.readouterr().err
    assert "p.y * taps[1];" in page.read_text()
    assert "http" not in page.read_text(), "the page loads nothing"
    out, taps = np.zeros(32), np.load(tmp_path / "taps.npy")
    ptxcount.count(file, "filled", 1, 32, [out, *make_arguments([f"p={struct}"])], variables={"taps": taps})
    assert out.tolist() == [2.5 * 2] * 32


def test_unknown_words_are_refused() -> None:
    # no seed, one bound, no file, no JSON, no dtype, no member, no text
    words = ("float32[4]=random", "float32[4]=random(1,2)", "@gone.npy", "{", '{"a": "float[4]"}', "{}", "[7]")
    for word in words:
        with pytest.raises(LaunchError):
            make_arguments([f"x={word}"])


def test_only_object_like_macros_are_expanded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.cu"
    source.write_text("""#define PLAIN extern "C" __global__ void  // of C
#define NAMED(name) extern "C" __global__ void name
PLAIN a(float* out, const float* in) { out[0] = in[0]; }
NAMED(b)(float* out, const float* in) { out[0] = in[0]; }
""")
    words = [str(source), "--grid", "1", "--block", "1", "in=float32[1]", "out=float32[1]", "--entry"]
    assert [main([*words, "a"]), main([*words, "b"])] == [1, 0]
    error, warning = capsys.readouterr().err.splitlines()
    assert "the kernel's order is out, in; reorder or rename them" in error
    assert warning == "warning: argument names are unchecked: found no plain declaration of b; check their order"
    listed = read_output(capsys, source)
    assert "a(float* out, const float* in)  (line 3)" in listed
    assert "b(8 bytes p0, 8 bytes p1)  (parameter names unknown" in listed


def test_kernel_of_cupy_is_compiled() -> None:
    text = 'extern "C" __global__ void scale(float* o) { o[threadIdx.x] *= BY; }'
    kernel = SimpleNamespace(code=text, name="scale", options=("-DBY=2",))
    out = np.ones(32, np.float32)
    assert ptxcount.count(kernel, None, 1, 32, [out]).stores.sectors == 4
    assert out.tolist() == [2] * 32


def test_unknown_object_is_refused() -> None:
    kinds = (
        "a Path, a text, the bytes of a cubin, a CuPy RawKernel, a Numba dispatcher, a kernel of Triton, Warp, cuTile "
        "or tilelang, or a function that CuTe DSL compiled"
    )
    with pytest.raises(LaunchError, match=f"^the kernel has the type int; pass {kinds}$"):
        ptxcount.count(7, None, 1, 32, [])


def _dispatcher(module: str) -> Any:
    return type("Dispatcher", (), {"py_func": len, "targetoptions": {}, "__module__": module})()


def test_dispatcher_of_another_package_is_refused() -> None:
    message = r"^a dispatcher of numba_hip is not supported, .* pass the PTX that numba_hip"
    with pytest.raises(LaunchError, match=message):
        ptxcount.count(_dispatcher("numba_hip.dispatcher"), None, 1, 32, [])


@pytest.mark.parametrize(("signature", "types"), [(None, ("float32",) * 3), ("void(...)", "void(...)")])
def test_numba_compiles_for_types(signature: str | None, types: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba gets the dispatcher's function (here ``len``), the types and sm_90. Meanwhile, the current device is sm_90.

    The stand-in compiles CUDA C++ that takes arrays as Numba does, in seven parameters each.
    """
    vector = "void*, void*, long long {0}_size, long long {0}_item, float* {0}, long long {0}_shape, long long {0}_step"
    text = (
        f'extern "C" __global__ void scale({vector.format("o")}, {vector.format("x")}, float by) {{\n'
        "int i = threadIdx.x;\n"
        "if (i < o_shape && o_size == 8 && o_item == 4 && o_step == 4) o[i] = x[i] * by; }"
    )

    def compile_ptx(function: Any, argument_types: Any, *, lineinfo: bool, cc: tuple[int, int]) -> tuple[str, None]:
        assert (function, argument_types, cc) == (len, types, (9, 0))
        assert dispatcher.get_current_device().compute_capability == (9, 0)  # as device functions ask
        ptx = compile_to_ptx(text)
        return ptx if lineinfo else re.sub(r"\n\s*\.loc.*", "", ptx), None

    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(typeof=lambda argument: str(argument.dtype)))
    monkeypatch.setitem(sys.modules, "numba.cuda", SimpleNamespace(compile_ptx=compile_ptx))
    dispatcher = SimpleNamespace(get_current_device=None)
    monkeypatch.setitem(sys.modules, "numba.cuda.dispatcher", dispatcher)
    out = np.zeros(8, np.float32)
    arguments: list[Any] = [out, np.ones(8, np.float32), np.float32(3)]
    counters = ptxcount.count(_dispatcher("numba.cuda.dispatcher"), signature, 1, 32, arguments)
    assert out.tolist() == [3] * 8
    assert [line for _, line in counters.by_line()] == [3]
    assert dispatcher.get_current_device is None  # as before the call
