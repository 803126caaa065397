"""Guessed launches in listings of files and in ``ptxcount init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import ptxcount
from ptxcount.cli.argument_words import make_arguments
from ptxcount.command_line import main
from ptxcount.report.launch_guess import guess_block, guess_template_argument
from ptxcount.report.suggested_launches import list_kernels
from ptxcount.source.declarations import find_structs
from tests.ptxcount.snippets import module

#: Text before the kernel's name -> options of the suggested command.
DECLARED = {
    "__global__ void": "--block 256",
    "__global__ void __launch_bounds__(128)": "--block 128",
    "__launch_bounds__(64, 2) __global__ void": "--block 64",
    "template <typename T> __global__ void __launch_bounds__(32)": "--block 32",
    "extern __shared__ float buffer[]; __shared__ float own[3]; __global__ void": "--block 256",
    "/* tiled */ __global__ void": "--grid 8,8 --block 32,8",
    "/* planar */ __global__ void": "--grid 8,32 --block 32,8",
}
BODY = "x[threadIdx.x] += 1;"
SHARED = (
    "own[threadIdx.x % 3] = 1; buffer[threadIdx.x] = x[threadIdx.x]; __syncthreads(); "
    "x[threadIdx.x] = buffer[threadIdx.x ^ 1] + own[threadIdx.x % 2];"
)


#: A block of 32 x 8 threads transposes a tile of 32 x 32.
TILE = """\
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * 256 + column];
    __syncthreads();
    for (int j = 0; j < 32; j += 8) x[(row + j) * 256 + column] = tile[threadIdx.x][threadIdx.y + j];
"""
BODIES = {"extern": SHARED, "tiled": TILE, "planar": "x[(blockIdx.y * blockDim.y + threadIdx.y) * 256] = 0;"}


@pytest.mark.parametrize(("declared", "options"), DECLARED.items())
def test_suggested_launch_runs(declared: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its block fits the kernel, its grid the arrays, and it has the required dynamic shared memory."""
    source = tmp_path / "k.cu"
    body = next((body for word, body in BODIES.items() if word in declared), BODY)
    source.write_text(f"{declared} k(float* x, int rows, int columns) {{ {body} }}")
    assert main([str(source)]) == 0
    (command,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ptxcount ")]
    assert options in command
    assert ("--dynamic-shared 49136" in command) is ("extern" in declared)
    assert main(shlex.split(command)[1:]) == 0


@pytest.mark.parametrize(
    ("directive", "block"), [(".reqntid 8, 4, 2", "8,4,2"), (".reqntid 64", "64"), (".maxntid 96, 1, 1", "96")]
)
def test_blocks_of_ptx(directive: str, block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``.reqntid`` fixes the block, ``.maxntid`` bounds it."""
    file = tmp_path / "k.ptx"
    text = module("ret;", 1)
    head, bracket, body = text.partition("{")
    file.write_text(f"{head}{directive}\n{bracket}{body}")
    assert main([str(file)]) == 0
    assert f"--block {block} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("planar", "most", "block"),
    [(False, 0, (256,)), (False, 1024, (256,)), (True, 0, (32, 8)), (True, 48, (32, 1)), (True, 16, (16, 1))],
)
def test_guessed_blocks(planar: bool, most: int, block: tuple[int, ...]) -> None:
    """A block is a row, or rows of a warp, within the limit."""
    assert guess_block(planar, most) == block


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [("typename T", "float"), ("class T = int", "int"), ("int N", "16"), ("bool B", "true"), ("unsigned N = 4", "4")],
)
def test_guessed_template_arguments(parameter: str, argument: str) -> None:
    """The default, or a value for the kind."""
    assert guess_template_argument(parameter) == argument


def test_guesses_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands are ``ptxcount init`` and the listing."""
    source = tmp_path / "k.cu"
    body = SHARED.replace("own", "buffer")
    source.write_text(f"extern __shared__ float buffer[]; __global__ void k(float* x) {{ {body} }}")
    assert main(["init", str(source)]) == 0
    text = capsys.readouterr().out
    guessed = {line.partition(" ")[0] for line in text.splitlines() if "# a guess" in line or "# guesses" in line}
    assert guessed == {"grid", "block", "dynamic_shared", "arguments"}
    assert {"block = [256, 1, 1]  # a guess", "dynamic_shared = 49152  # a guess"} <= {*text.splitlines()}
    assert main([str(source)]) == 0
    assert "are guesses" in capsys.readouterr().out


STRUCTS = """\
struct Inner { const float *x; /* many */ int n[2]; };
struct Params { float by, to; unsigned int n; Inner in; };
struct Half { long long n; __device__ long long get() const { return n; } };
__global__ void scale(float* o, Params p, Half h) {
    if (threadIdx.x < p.n) o[threadIdx.x] = p.in.x[threadIdx.x] * p.by;
}
"""


def test_structs() -> None:
    """Members of structs with only data, also several of one type, and arrays."""
    structs = find_structs(STRUCTS)
    assert structs["Inner"] == [("const float*", "x", 0), ("int", "n", 2)]
    assert structs["Params"] == [("float", "by", 0), ("float", "to", 0), ("unsigned int", "n", 0), ("Inner", "in", 0)]
    assert {*structs} == {"Inner", "Params"}
    assert find_structs("struct Whole {int n;}; struct P {float a; float m[3][3]; int n;};").keys() == {"Whole"}


NUMBA_ARRAY = "_ZN1m4axpyE5ArrayIfLi1E1A7mutable7alignedEf"


def test_parts_of_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of Numba's PTX has an array, which its parameters have in parts; a float is one."""
    file, kinds = tmp_path / "kernel.ptx", [*[".u64"] * 7, ".f32"]
    parameters = ", ".join(f".param {kind} p{n}" for n, kind in enumerate(kinds))
    entry = f".visible .entry {NUMBA_ARRAY}({parameters}) {{ ret; }}"
    file.write_text(f".version 8.0\n.target sm_90\n.address_size 64\n{entry}\n")
    (kernel,) = list_kernels(file)
    assert kernel.arguments == [*(f"p{n}=float32[262144]" for n in range(7)), "p7=float32:1"]
    numbers = ["0", "0", "64", "4", "x=float32[64]", "64", "4", "float32:2"]
    words = [number if "=" in number or ":" in number else f"int64:{number}" for number in numbers]
    assert main([str(file), "--grid", "1", "--block", "32", *words]) == 0
    assert "0 requests" in capsys.readouterr().out


def test_pointers_within_struct(tmp_path: Path) -> None:
    """A pointer to pointers is recognized, also within a struct and as a pointee."""
    file = tmp_path / "kernel.cu"
    source = "struct P { float **rows; int n; };\n"
    file.write_text(source + "__global__ void k(float* o, P p, float ***q) { o[0] = p.n + p.rows[1][2] + q[1][1][3]; }")
    (kernel,) = list_kernels(file)
    arguments: list[Any] = [*make_arguments(kernel.arguments)]
    ptxcount.count(file, None, 1, 1, arguments)
    assert arguments[0][0] == 65536 + 2 + 3


def test_struct_arguments(tmp_path: Path) -> None:
    """Structs by value are described by their members, so that the command counts something; others by zeros."""
    file = tmp_path / "kernel.cu"
    file.write_text(STRUCTS)
    (kernel,) = list_kernels(file)
    members = '{"by": "float32:1", "to": "float32:1", "n": "uint32:65536", '
    members += '"in": {"x": "float32[1048576]", "n": ["int32:65536", "int32:65536"]}}'
    assert kernel.arguments == ["o=float32[1048576]", f"p={members}", f"h=bytes:{16 * '0'}"]
    arguments = make_arguments(kernel.arguments)
    assert ptxcount.count(file, None, 1, 32, arguments).loads.requests == 1


#: Parameters and body of a kernel, and its guessed launch.
USES = (
    ("const float* x, float* o, int n) { if (I <= n) o[I] = x[I];",
     "--grid 256 --block 256 x=float32[65528] o=float32[65528] n=int32:65528"),
    ("const P* p, float* o, int n) { if (I < n) o[I] = p[I].y;",
     "--grid 256 --block 256 p=float32[65528,3] o=float32[65528] n=int32:65528"),
    ("const int* at, float* o, int n) { int j = at[I]; if (n > I) o[j] = 1;",
     "--grid 256 --block 256 at=int32[65528]=random(1) o=float32[65528] n=int32:65528"),
    ("const float* x, float* o, int n) { if (I >= n) return; for (int j = 0; j < n; j++) o[I] += x[j * n + I];",
     "--grid 1 --block 256 x=float32[248,248] o=float32[248,248] n=int32:248"),
    ("float* o, int turns) { int t = threadIdx.x; for (int k = 0; k < turns; k++) if (k + 1 < turns) o[t] += k; "
     "o[blockIdx.x * WARP + t] = 0;", "--grid 2048 --block 32 o=float32[1048576] turns=int32:4"),
    ("float* o) { __shared__ float s[4 * WARP]; s[threadIdx.x] = 1; __syncthreads(); o[I] = s[127 - threadIdx.x];",
     "--grid 512 --block 128 o=float32[1048576]"),
    ("float* o, int w, int h) { int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y; "
     "if (x < w && y < h) o[y * w + x] = taps[3];", "--grid 16,16 --block 16,16 --variable taps=float32[9]=ones "
     "o=float32[248,248] w=int32:248 h=int32:248"),
    ("float*, float* o) { float taps = 2; o[I] = taps;",
     "--grid 256 --block 256 p0=float32[1048576] o=float32[1048576]"),
    ("const float* x, float* o, int stride) { o[I] = x[I * stride];",
     "--grid 256 --block 256 x=float32[1048576] o=float32[1048576] stride=int32:2"),
)  # fmt: skip


def test_uses(tmp_path: Path) -> None:
    """The text determines blocks, sizes, iterations, indices and constants; a wrong bound is out of bounds."""
    file, head = tmp_path / "uses.cu", "#define SIDE (WARP / 2)\n#define I (blockIdx.x * blockDim.x + threadIdx.x)\n"
    head += "constexpr int WARP = 32; struct P { float x, y, z; }; __constant__ float taps[9];\n"
    file.write_text(head + "".join(f"__global__ void k{n}({text} }}\n" for n, (text, _) in enumerate(USES)))
    commands = [shlex.split(kernel.format_command(file, alone=False))[1:] for kernel in list_kernels(file)]
    assert [command[3:] for command in commands] == [launch.split() for _, launch in USES]
    assert [main(commands[0]), main(commands[6])] == [1, 0]
