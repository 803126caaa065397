"""Guessed launches in listings of files and in ``ptxcount init``."""

import shlex
from pathlib import Path
from typing import Any

import pytest

import ptxcount
from ptxcount.cli.argument_words import make_arguments
from ptxcount.command_line import main
from ptxcount.report.kernel_uses import KernelUses
from ptxcount.report.suggested_launches import list_kernels
from ptxcount.source.declarations import find_declarations, find_structs, guess_instance
from tests.ptxcount.commands import read_output
from tests.ptxcount.snippets import module

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
#: Text before the kernel's name, its body, and options of the suggested command. The last three have rows of 256.
DECLARED = [
    ("__global__ void", BODY, "--block 256"), ("__global__ void __launch_bounds__(128)", BODY, "--block 128"),
    ("__launch_bounds__(64, 2) __global__ void", BODY, "--block 64"),
    ("template <typename T> __global__ void __launch_bounds__(32)", BODY, "--block 32"),
    ("extern __shared__ float buffer[]; __shared__ float own[3]; __global__ void", SHARED, "--block 256"),
    ("__global__ void", TILE, "--grid 8,8 --block 32,8"),
    ("__global__ void", "x[(blockIdx.y * blockDim.y + threadIdx.y) * 256] = 0;", "--grid 8,32 --block 32,8"),
    ("__global__ void __launch_bounds__(48)", TILE, "--block 32,1"),
]  # fmt: skip


def test_suggested_launches_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.cu"
    parameters = "(float* x, int rows, int columns)"
    kernels = [f"{declared} k{n}{parameters} {{ {body} }}\n" for n, (declared, body, _) in enumerate(DECLARED)]
    source.write_text("".join(kernels))
    commands = [line for line in read_output(capsys, source).splitlines() if line.startswith("  ptxcount ")]
    for command, (declared, _, options) in zip(commands, DECLARED, strict=True):
        assert f"{options} " in command
        # 48 KiB less ``own``, of 12 bytes, which fill 16
        assert ("--dynamic-shared 49136" in command) is ("extern" in declared)
        assert main(shlex.split(command)[1:]) == 0


#: Kernels with the same name, and the entries of the suggested commands, in order. The last is listed from the PTX.
OVERLOADS = """\
#if 0
__global__ void k(int* x, int n) { x[0] = n; }
__global__ void gone(int* x) { x[0] = 1; }
#endif
__global__ void k(float* x) { x[threadIdx.x] = 1; }
__global__ void k(const double* x) { x[threadIdx.x]; }
template <class T> __global__ void k(T* x, T n) { x[threadIdx.x] = n; }
template __global__ void k<int>(int*, int);
namespace own { __global__ void k(float* x) { x[threadIdx.x] = 1; } }
#define PARAMETERS int* x, int n
__global__ void by_macro(PARAMETERS) { x[threadIdx.x] = n; }
"""
ENTRIES = ["k(float*)", "k(double const*)", "k<int>", "own::k", "by_macro"]


def test_each_compiled_kernel_has_a_command(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(OVERLOADS)
    kernels = list_kernels(file)
    assert [kernel.entry for kernel in kernels] == ENTRIES
    assert [main(shlex.split(kernel.format_command(file, alone=False))[1:]) for kernel in kernels] == [0] * 5


@pytest.mark.parametrize(
    ("directive", "block"), [(".reqntid 8, 4, 2", "8,4,2"), (".reqntid 64", "64"), (".maxntid 96, 1, 1", "96")]
)
def test_directive_gives_block(directive: str, block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(module("", 1).replace("{", f"{directive}\n{{", 1))
    assert f"--block {block} " in read_output(capsys, file)


@pytest.mark.parametrize(("template", "instance"), [
    ("typename... Ts", "v<float>"), ("bool B, typename T = double", "v<true, double>"), ("int N", "v<256>"),
    ("typename T, int M", "v<float, 16>"), ("class T = int, unsigned M = 4", "v<int, 4>"),  # only N is the block
    ("int N = (2 * 8)", "v<(2 * 8)>"), ("int N = 1 << 4, int M = 2", "v<1 << 4, 2>"),
    ("int N = (sizeof(float) > 2), int M = 2", "v<(sizeof(float) > 2), 2>"),
    ("typename T = std::array<int, 4>, int N = 2", "v<std::array<int, 4>, 2>"),
])  # fmt: skip
def test_instances_are_guessed(template: str, instance: str) -> None:
    text = f"template <{template}> __global__ void v(float* x) {{ x[blockIdx.x * N + threadIdx.x] = 0; }}"
    assert guess_instance(*find_declarations(text)) == instance


def test_guesses_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.cu"
    body = SHARED.replace("own", "buffer")
    source.write_text(f"extern __shared__ float buffer[]; __global__ void k(float* x) {{ {body} }}")
    text = read_output(capsys, "init", source)
    guessed = {line.partition(" ")[0] for line in text.splitlines() if "# a guess" in line or "# guesses" in line}
    assert guessed == {"grid", "block", "dynamic_shared", "arguments"}
    assert {"block = [256, 1, 1]  # a guess", "dynamic_shared = 49152  # a guess"} <= {*text.splitlines()}
    assert "if the launch fails, look here first" in text
    listed = read_output(capsys, source)
    assert "if a launch fails, start there" in listed
    assert "are guesses" in listed


STRUCTS = """\
struct Inner { const float *x; /* many */ int n[2]; };
struct Params { float by, to; unsigned int n; Inner in; };
struct Half { long long n; __device__ long long get() const { return n; } };
__global__ void scale(float* o, Params p, Half h) {
    if (threadIdx.x < p.n) o[threadIdx.x] = p.in.x[threadIdx.x] * p.by;
}
"""


def test_methods_types_and_constants_are_no_members() -> None:
    methods = "M(const float* x) : x(x) { if (n) { f(x); } } __device__ int f() const { return n; };"
    types = "static constexpr int N = 3; using T = float; typedef int U;"
    text = f"struct M {{ const float* x; {methods} {types} float by = 0.5f, to; int* n = nullptr; }};"
    assert find_structs(text) == {
        "M": [("const float*", "x", 0), ("float", "by", 0), ("float", "to", 0), ("int*", "n", 0)]
    }


@pytest.mark.parametrize("member", [
    "int low : 3", "bool operator==(const S& b) const", "S& operator=(const S& b)", "int f(int n = 3)", "int f()",
    "virtual int f() { return 1; }", "float m[3][3]", "struct { int x; } in", "struct In { int x, y; } in",
    "union { int low; float high; }", "int m; }; struct S { int k",
])  # fmt: skip
def test_struct_of_unknown_layout_is_left_out(member: str) -> None:
    assert find_structs(f"struct Whole {{ int n; }}; struct S {{ {member}; int n; }};").keys() == {"Whole"}


def test_array_of_numba_has_seven_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, name = tmp_path / "kernel.ptx", "_ZN1m4axpyE5ArrayIfLi1E1A7mutable7alignedEf"
    file.write_text(module("", 8).replace("snippet", name).replace(".u64 p7", ".f32 p7"))
    (kernel,) = list_kernels(file)
    assert kernel.arguments == [*(f"p{n}=float32[262144]" for n in range(7)), "p7=float32:1"]
    # Two null pointers, the number of elements, their size, the data, the length and the stride; then the float.
    words = "int64:0 int64:0 int64:64 int64:4 x=float32[64] int64:64 int64:4 float32:2"
    out = read_output(capsys, file, "--grid", "1", "--block", "32", *words.split())
    assert "0 requests: no thread reached a load or a store" in out


def test_guesses_have_pointers_to_pointers(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    source = "struct P { float **rows; int n; };\n"
    file.write_text(source + "__global__ void k(float* o, P p, float ***q) { o[0] = p.n + p.rows[1][2] + q[1][1][3]; }")
    (kernel,) = list_kernels(file)
    arguments: list[Any] = [*make_arguments(kernel.arguments)]
    ptxcount.count(file, None, 1, 1, arguments)
    assert arguments[0][0] == 65536 + 2 + 3  # the guess of p.n; guessed arrays are 0, 1, 2, ...


def test_guessed_struct_has_its_members(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text(STRUCTS)
    (kernel,) = list_kernels(file)
    members = '{"by": "float32:1", "to": "float32:1", "n": "uint32:65536", '
    members += '"in": {"x": "float32[1048576]", "n": ["int32:65536", "int32:65536"]}}'
    assert kernel.arguments == ["o=float32[1048576]", f"p={members}", 'h={"n": "int64:65536"}']
    arguments = make_arguments(kernel.arguments)
    assert ptxcount.count(file, None, 1, 32, arguments).loads.requests == 1


def test_unknown_struct_without_pointers_is_its_bytes(tmp_path: Path) -> None:
    """A struct with a pointer has no guess: bytes of zeros would be null pointers."""
    file = tmp_path / "kernel.cu"
    methods = "struct Q { float* x; int f(); }; struct R { int f(); int n; };"
    file.write_text(f"{methods} __global__ void k(Q q, R r) {{ q.x[0] = r.n; }}")
    assert list_kernels(file)[0].arguments == ["q={}", "r=bytes:00000000"]


#: Parameters and body of a kernel, and its guessed launch. Bounded kernels have 8 threads less an axis than the grid:
#: 65528 of 2**16, 248 of 2**8, or 56 of 2**6. I is the number of a thread in the launch, WARP is 32, and SIDE is 16.
USES = (
    # an element a thread; structs of three floats; indices; n rows of n elements
    ("const float* x, float* o, int n) { if (I <= n) o[I] = x[I];",
     "--grid 256 --block 256 x=float32[65528] o=float32[65528] n=int32:65528"),
    ("const P* p, float* o, int n) { if (I < n) o[I] = p[I].y;",
     "--grid 256 --block 256 p=float32[65528,3] o=float32[65528] n=int32:65528"),
    ("const int* at, float* o, int n) { int j = at[I]; if (n > I) o[j] = 1;",
     "--grid 256 --block 256 at=int32[65528]=random(1) o=float32[65528] n=int32:65528"),
    ("const float* x, float* o, int n) { if (I >= n) return; for (int j = 0; j < n; j++) o[I] += x[j * n + I];",
     "--grid 1 --block 256 x=float32[248,248] o=float32[248,248] n=int32:248"),
    # blocks of WARP, of a shared array, and of SIDE x SIDE; the last kernel has a constant array
    ("float* o, int turns) { int t = threadIdx.x; for (int k = 0; k < turns; k++) if (k + 1 < turns) o[t] += k; "
     "o[blockIdx.x * WARP + t] = 0;", "--grid 2048 --block 32 o=float32[1048576] turns=int32:4"),
    ("float* o) { __shared__ float s[4 * WARP]; s[threadIdx.x] = 1; __syncthreads(); o[I] = s[127 - threadIdx.x];",
     "--grid 512 --block 128 o=float32[1048576]"),
    ("float* o, int w, int h) { int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y; "
     "if (x < w && y < h) o[y * w + x] = taps[3];", "--grid 16,16 --block 16,16 --variable taps=float32[9]=ones "
     "o=float32[248,248] w=int32:248 h=int32:248"),
    # no bound, so 2**20 elements; a stride; vectors of two
    ("float*, float* o) { float taps = 2; o[I] = taps;",
     "--grid 256 --block 256 p0=float32[1048576] o=float32[1048576]"),
    ("const float* x, float* o, int stride) { o[I] = x[I * stride];",
     "--grid 256 --block 256 x=float32[1048576] o=float32[1048576] stride=int32:2"),
    ("const __half2* x, half2* o) { o[I] = x[I];",
     "--grid 256 --block 256 x=float16[1048576,2] o=float16[1048576,2]"),
    ("const __nv_bfloat16* x, __nv_bfloat162* o) { o[I].x = x[I];",
     "--grid 256 --block 256 x=uint16[1048576] o=uint16[1048576,2]"),
    # the row of a tile, without padding, is the block: 32 and 8; no row of 48
    ("float* o) { __shared__ float s[WARP][WARP + 1]; s[1][threadIdx.x] = 1; __syncthreads(); "
     "o[I] = s[threadIdx.x][1];",
     "--grid 2048 --block 32 o=float32[1048576]"),
    ("float* o) { __shared__ float s[9][8]; s[1][threadIdx.x] = 1; __syncthreads(); o[I] = s[threadIdx.x][1];",
     "--grid 8192 --block 8 o=float32[1048576]"),
    ("float* o) { __shared__ float s[4][48]; s[1][threadIdx.x] = 1; __syncthreads(); o[I] = s[2][threadIdx.x];",
     "--grid 256 --block 256 o=float32[1048576]"),
    # a plane of blocks of one row; a space; a row a block, by its number, a loop, or a stride; arrivals at a barrier
    ("const float* x, float* o, int n) { int t = threadIdx.x; const float* row = x + (size_t)blockIdx.y * SIDE * n; "
     "o[(blockIdx.y * SIDE + t / 16) * n + blockIdx.x * WARP + t % 16] = row[t % 16];",
     "--grid 8,16 --block 256 x=float32[256,256] o=float32[256,256] n=int32:256"),
    ("float* o, int w, int h, int d) { int x = I, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z; "
     "if (x < w && y < h && z < d) o[(z * h + y) * w + x] = 1;",
     "--grid 2,7,56 --block 32,8 o=float32[56,56,56] w=int32:56 h=int32:56 d=int32:56"),
    ("float* o, int n) { int b = blockIdx.x; for (int c = threadIdx.x; c < n; c += blockDim.x) o[b * n + c] = 1;",
     "--grid 248 --block 256 o=float32[248,248] n=int32:248"),
    ("float* o, int by, int n) { float* row = o + blockIdx.x * 4 * n; "  # 4 rows of 256, without a bounds check
     "for (int c = threadIdx.x; c < 4 * n; c += blockDim.x) row[c] *= by;",
     "--grid 64 --block 256 o=float32[256,256] by=int32:256 n=int32:256"),
    ("float* o, int rows, int n) { for (int b = blockIdx.x; b < rows; b += gridDim.x) { float* row = o + b * n; "
     "for (int c = threadIdx.x; c < n; c += blockDim.x) row[c] = 1; }",
     "--grid 248 --block 256 o=float32[248,248] rows=int32:248 n=int32:248"),
    ("const float* x) { extern __device__ void init(void*, int); int full; init(&full, SIDE + 128);",
     "--grid 456 --block 144 x=float32[1048576]"),
    ("template <class T, int TILE> __global__ void shared(T* o) { extern __shared__ T s[]; "
     "o[blockIdx.x * TILE + threadIdx.x] = s[0];",
     "--grid 256 --block 256 --dynamic-shared 49152 o=float32[1048576]"),
    # each instance, with its types and numbers
    ("template <class T, int N = 8> __global__ void many(T* o) { o[blockIdx.x * N + threadIdx.x] = N;",
     "--grid 1024 --block 64 o=float64[1048576]", "--grid 512 --block 128 o=int32[1048576]"),
)  # fmt: skip
INSTANCES = "template __global__ void many<double, 64>(double*);\ntemplate __global__ void many<int, 128>(int*);\n"


def test_launch_is_guessed_from_the_text(tmp_path: Path) -> None:
    file, head = tmp_path / "uses.cu", "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#define SIDE (WARP / 2)\n"
    head += "#define I (blockIdx.x * blockDim.x + threadIdx.x)\n"
    head += "constexpr int WARP = 32; struct P { float x, y, z; }; __constant__ float taps[9];\n"
    heads = ["" if text.startswith("template") else f"__global__ void k{n}(" for n, (text, *_) in enumerate(USES)]
    kernels = (f"{begin}{text} }}\n" for begin, (text, *_) in zip(heads, USES, strict=True))
    file.write_text("".join([head, *kernels, INSTANCES]))
    commands = [shlex.split(kernel.format_command(file, alone=False))[1:] for kernel in list_kernels(file)]
    assert [command[3:] for command in commands] == [launch.split() for _, *launches in USES for launch in launches]
    out_of_bounds, within_bounds = commands[0], commands[6]  # ``I <= n`` exceeds the arrays by one element
    assert [main(out_of_bounds), main(within_bounds)] == [1, 0]


#: Statement -> direction of x; empty if another name may have its address, so that the text does not tell it.
DIRECTIONS = {
    "y[0] = x[i];": "in", "y[0] = a > x[p->x[x[1]]] && x[i] == 3 || x[i] <= x[j];": "in",
    "y[0] = __ldg(&x[i]) + __ldcs(x + 1);": "in",
    "x[i] = y[i] = 2; x[2][i + y[y[1]]].w = 3; __stcs(&x[i], 4);": "out",
    **dict.fromkeys(
        ("x[i] = y[x[0]];", "x [ i ] += 1;", "--x[i];", "x[i] <<= 1;", "atomicAdd(&x[i], y[i]);"), "in and out"),
    "float& r = x[i]; r = 2;": "", "float* r = &x[i]; *r = 2;": "", "store(x, i, 2); x[0] = 1;": "",
    "reinterpret_cast<float4*>(x)[i] = v;": "", "y[0] = s.x[0] + s->x[0];": "",
}  # fmt: skip


@pytest.mark.parametrize("body", DIRECTIONS)
def test_direction_follows_from_the_text(body: str) -> None:
    (declaration,) = find_declarations(f"__global__ void k(float* x, float* y, S s, int i) {{ {body} }}")
    assert KernelUses(declaration, "").find_direction("x") == DIRECTIONS[body]
