"""Kernels and launches of many forms: the benchmarks that `kernelwatch init` writes for them."""

import subprocess
import sys
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwatch.cli import init
from kernelwatch.scaffold.parse_launches import iter_launches
from kernelwatch.scaffold.write_classes import name_class, name_kernels
from kernelwatch.store import git
from tests.commits import begin
from tests.golden import golden

_F = "__global__ void f(float* x) {}"

#: Files of the repository: one for each form of kernel or launch, or for each reason to skip.
FILES = {
    "arguments.cu": """\
#include <cstdint>
#include <cuda_bf16.h>
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(T* __restrict__ out, const T* in, unsigned int n, float by) { }
extern "C" __global__ void sum(double* total, const unsigned short* values, long long size) {
}
namespace one { struct Atom { float x; };
namespace { __launch_bounds__(128) __global__ void blur(float k, Atom* image, int width, int height) { } }
template <class T, bool IsWide = false> __global__ void take(T all) { }
__global__ void step(int state[], const float weight, int steps, Atom lambda) { }
__global__ void clear(char* all) { }
__global__ void read(const float* all, int dtype) { }
__global__ void look(cudaTextureObject_t from, float* to) { }
__global__ void wide(float4* to, const __half* half, __nv_bfloat162* pair, __half one, uint64_t dtype) { }
}
""",
    "one/name.cu": _F,
    "two/name.cu": _F,
    "names.cu": "__global__ void f_1(int* x) {}\n__global__ void f1(int* x) {}\n__global__ void compiled(int* x) {}\n"
    "__global__ void isolated_sum(int* x) {}\n__global__ void sum_times(int* x) {}\n__global__ void s(int* x) {}",
    "overloads.cu": "__global__ void o(float* x, const int* y) {}\n__global__ void o(int* x, const int* y) {}",
    "qualified.cu": "#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(64) bounds(float* x) {}\n"
    "__global__ void __launch_bounds__(32 * (1 + 1), (2)) brackets(float* x) {}\nstatic __global__ void own(int* x) {}"
    "\n__global__ void __cluster_dims__(2, 1, 1) clustered(float* x) {}\n"
    "__global__ void call(float a[], float (*op)(float, int), int n) {}\n"
    "__global__ void pointers(float** rows, float* planes[], int n) {}",
    "texts.cu": '// __global__ void c(float* p) {}\nconst char* T = "__global__ void q() {}";\n'
    "__global__ void g(int*);\n__global__ void g(int* x) {}\n#if 0\n__global__ void not_made(float* x) {}\n#endif",
    "instances.cu": "template <typename T, int N> __global__ void made(T* x) {}\n"
    "void go() { made<double, 4><<<1, 1>>>(nullptr); made<int, 4><<<1, 1>>>(nullptr); }",
    "maß 'b\".cu": "using real = float;\n__global__ void quoted(real* x) {}",
    "gone.cu": "__global__ void gone(float* x) {}",
    "lib/include/v.h": "using real = float;",
    "lib/src/k.cu": '#include "v.h"\n#include "../near.h"\n__global__ void included(real* x, near_t n) {}',
    "lib/near.h": '#include <deep/d.h>\nusing near_t = deep_t;',
    "lib/third/deep/d.h": "using deep_t = int;",
    "a/v.h": "#error not this one",
    "k.cuh": "#pragma once\nnamespace n { template <class T, int N> __global__ void header(T* x, int n) {} }",
    "host.cpp": '#include "k.cuh"\nvoid go() { n::header<float, 2><<<(n + 7) / 8, 8>>>(x, n); }',
    "own/part.h": "__global__ void part(real* x) { x[0] = LIMIT; }\n"
    "template <class T> __global__ void __launch_bounds__(128) of_part(T* x) { x[0] = LIMIT; }",
    "own/part.cu": '#define LIMIT 4\nusing real = float;\n#include "part.h"\nvoid go() { part<<<1, 64>>>(nullptr); }',
    "alone.cuh": "#include <inner.h>\n__global__ void alone(real* x) { }",
    "own/folder/inner.h": "",
    "undefined.h": "__global__ void undefined(real* x) { }",
    "mark.cu": "\ufeff__global__ void __launch_bounds__(64) marked(float* x) { x[0] = MORE; }",
    "mark.py": "\ufeffA: str = '__global__ void marked_text(float* x) { x[0] = 1; }'",
    "refused.cu": "#include <nowhere.h>\n__global__ void refused(float* x) {}",
    "extra.cu": "#include <cublas_v2.h>\n__global__ void extra(float* x) {}",
    "src/package/texts.py": "A = '''\n__global__ void in_a_text(float* x) {}'''\n"
    "B = cupy.RawKernel('__global__ void nameless(int* x) {}', 'g')\n",
    "package/broken.py": "'__global__ void f(int* x) {}' def",
    "launches.cu": """\
__global__ void numbers(float* x, int n) {}
__global__ void planes(float* x, int w, int h) {}
__global__ void braces(float* x) {}
__global__ void unknown(float* x) {}
__global__ void circular(float* x) {}
template <typename T, int N, bool B> __global__ void arguments(T* x) {}
""",
    "launches.cpp": """\
#define BLOCK 128
#define TWICE BLOCK * 2
constexpr int kTile{16};
void another() { dim3 block(64); int threads = 64; }
// numbers<<<1, 1>>>(a, n);
void go(float* a, int n, int rows, int given) {
    const int threads = 256; int round = round;
    dim3 grid((n + 31) / 32, rows), block(32, 8);
    numbers<<<(n + threads - 1) / threads,
              threads, 0, stream>>>(a, n);
    numbers<<<1, 1>>>(a);
    planes<<<grid, block, TWICE * sizeof(float)>>>(a, n, rows);
    braces<<<dim3(n, 2u), dim3{kTile, kTile}, n * 4>>>(a);
    unknown<<<pick(n), given>>>(a);
    circular<<<1, round>>>(a);
    arguments<double, BLOCK / 2, true><<<1, {4, 4}>>>(a);
}
void last() { dim3 block(16); int threads = 32; }
""",
    "uses.cu": """\
#define SIDE 16
struct Point { float x, y, z; };
__constant__ float taps[2 * SIDE];
__global__ void convolve(float* out, int w, int h) {
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = taps[threadIdx.x];
}
__global__ void pick(float* out, const Point* points, const int* at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = points[at[i]].y;
}
__global__ void shift(float* out, const float* in, int turns) {
    for (int k = 0; k < turns; k++) out[blockIdx.x * SIDE + threadIdx.x] += (in + 1)[k];
}
""",
    "square.cu": """\
#define TILE 32
__global__ void transpose(const float* in, float* out, int n) {
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += 8) if (x < n && y + k < n) out[x * n + y + k] = in[(y + k) * n + x];
}
__global__ void of_grid(float* sums, float* matrix) { atomicAdd(&sums[blockIdx.y], ++matrix[threadIdx.y * TILE]); }
__global__ void whole_row(float* in, float* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) for (int k = 0; k < n; k++) sums[i] += in[i * n + k];
}
void go(float* a, int n) { dim3 grid((n + 31) / 32, (n + 31) / 32); transpose<<<grid, dim3(32, 8)>>>(a, a, n); }
""",
    "uses_host.cu": """\
#include "uses.cu"
void go(float* a, int w, int h) { dim3 block(SIDE, SIDE / 2); convolve<<<dim3(w, h), block>>>(a, w, h); }
""",
}  # fmt: skip


def test_each_kernel_is_written_or_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = begin(tmp_path / "repository")
    monkeypatch.chdir(root)
    for file, text in FILES.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    git.text(root, "add", "--all")
    (root / "gone.cu").unlink()
    assert init.main(["--flags=-DMORE=4"]) == 0
    written = (root / "benchmarks" / "kernels.py").read_text(encoding="utf-8")
    assert written.count("\n") <= 6 + 8 * written.count("class "), "a class has more than eight lines"
    shown, expected = golden("init.txt", f"{capsys.readouterr().out}\n{written}")
    assert shown == expected
    program = "from benchmarks.kernels import SUITE; print(len(SUITE.kernels()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == written.count("class ")


#: Text before `k<T><<<1, block>>>(x);` -> block and template argument, both empty if unknown.
DECLARED: dict[str, tuple[tuple[int, ...], str]] = {
    "const int T = 32; dim3 block(T, 8);": ((32, 8), "32"),
    "constexpr unsigned T{32U}; dim3 const block{T, 8U, 1U};": ((32, 8, 1), "32"),
    "constexpr auto T = {32u}; auto const block = dim3{T, 8};": ((32, 8), "32"),
    "constexpr std::size_t T(32); dim3 block = {T, 8};": ((32, 8), "32"),
    "unsigned T = 0x20u; dim3 other(1), block((T), T / 4);": ((32, 8), "32"),
    "auto T{1'024}; int block{T};": ((1024,), "1024"),
    "const int T = static_cast<int>(64ull / 2); const dim3 block{static_cast<unsigned int>(T),\n 8};": ((32, 8), "32"),
    "const int T = (int) 32; dim3 block(unsigned(T), (unsigned long) 8);": ((32, 8), "32"),
    "const int T = sizeof(int); dim3 block{pick(T)};": ((), ""),
}


@pytest.mark.parametrize("declared", DECLARED)
def test_block_of_a_launch_is_parsed(declared: str) -> None:
    (launch,) = iter_launches("a.cu", f"void go() {{ {declared} k<T><<<1, block>>>(x); }}")
    assert (launch.block, *launch.template) == DECLARED[declared]


@pytest.mark.parametrize("names", [*permutations(("blur", "isolated_blur", "blur_times"))])
def test_timed_classes_have_different_names(names: tuple[str, ...]) -> None:
    kernels: list[Any] = [SimpleNamespace(unit=SimpleNamespace(file="a.cu"), name=name) for name in names]
    classes = [f"{first}{name_class(name)}" for name in name_kernels(kernels) for first in ("", "Isolated")]
    assert len({*classes, *(f"{name}Times" for name in classes)}) == 2 * len(classes)
