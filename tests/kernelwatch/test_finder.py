"""The finder of kernels: whatever shape a kernel, a file or a launch has; what is left out is said, with the reason."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kernelwatch import guesses
from kernelwatch.finder import Finder, Found, Unit
from kernelwatch.launches import launches

#: What a repository has -> file, line, entry point and names of parameters of each kernel; and what is said of others.
SHAPES: dict[str, tuple[Mapping[str, str], Sequence[str], Sequence[str]]] = {
    "one name in several files": (
        {"a.cu": "__global__ void f(float* x) {}", "b.cu": "__global__ void f(float* y) {}"},
        ["a.cu:1 f(x)", "b.cu:1 f(y)"],
        [],
    ),
    "overloads": (
        {"a.cu": "__global__ void f(float* x) {}\n__global__ void f(int* y) {}"},
        ["a.cu:1 f(float*)(x)", "a.cu:2 f(int*)(y)"],
        [],
    ),
    "brackets in __launch_bounds__": (
        {"a.cu": "__global__ void __launch_bounds__(32 * (1 + 1), (2)) f(float* x) {}"}, ["a.cu:1 f(x)"], [],
    ),
    "a macro for __launch_bounds__": (
        {"a.cu": "#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(64) f(float* x) {}"},
        ["a.cu:2 f(x)"],
        [],
    ),
    "static, clusters, an anonymous namespace": (
        {
            "a.cu": "static __global__ void f(float* x) {}\n__global__ void __cluster_dims__(2, 1, 1) g(float* x) {}\n"
            "namespace n { namespace { __global__ void h(float* x) {} } }"
        },
        ["a.cu:1 f(x)", "a.cu:2 g(x)", "a.cu:3 h(x)"],
        [],
    ),
    "kernels that a macro makes, two on a line": (
        {"a.cu": "#define MAKE(T) __global__ void f_##T(T* x, int n) {}\nMAKE(float) MAKE(int)"},
        ["a.cu:2 f_float(p0, p1)", "a.cu:2 f_int(p0, p1)"],
        [],
    ),
    "pointers to functions, arrays without a length": (
        {"a.cu": "__global__ void f(float a[], float (*op)(float, int), int n) {}"}, ["a.cu:1 f(a, op, n)"], [],
    ),
    "comments, texts, prototypes": (
        {"a.cu": '// __global__ void c(float* p) {}\nconst char* T = "__global__ void q() {}";\n'
                 "__global__ void f(int*);\n__global__ void f(int* x) {}"},
        ["a.cu:4 f(x)"],
        [],
    ),
    "instances of templates": (
        {
            "a.cu": "template <typename T, int N> __global__ void f(T* x) {}\n"
            "void go() { f<double, 4><<<1, 1>>>(nullptr); f<int, 4><<<1, 1>>>(nullptr); }"
        },
        ["a.cu:1 f<double, 4>(x) f<double, 4> f<int, 4>"],
        [],
    ),
    "what an #if leaves out": (
        {"a.cu": "#if 0\n__global__ void f(float* x) {}\n#endif\n__global__ void g(float* x) {}"},
        ["a.cu:4 g(x)"],
        ["a.cu:2: f: nvcc makes nothing of it; is it behind an #if?"],
    ),
    "names that are no ASCII, with spaces and quotes": (
        {"maß.cu": "__global__ void f(float* x) {}", "a 'b\".cu": "__global__ void g(float* x) {}"},
        ["a 'b\".cu:1 g(x)", "maß.cu:1 f(x)"],
        [],
    ),
    "deleted files": (
        {"a.cu": "__global__ void f(float* x) {}", "gone.cu": ""}, ["a.cu:1 f(x)"],
        ["gone.cu: it is deleted, or not checked out"],
    ),
    "a header that stands alone": (
        {
            "include/k.cuh": "#pragma once\nnamespace n { template <typename T> __global__ void f(T* x) {} }",
            "src/a.cu": '#include "k.cuh"\nvoid go() { n::f<float><<<1, 1>>>(nullptr); }',
        },
        ["include/k.cuh:2 n::f<float>(x) n::f<float>"],
        [],
    ),
    "headers of one name": (
        {
            "a/include/v.h": "using real = float;",
            "a/src/k.cu": '#include "v.h"\n__global__ void f(real* x) {}',
            "b/v.h": "#error not this one",
        },
        ["a/src/k.cu:2 f(x)"],
        [],
    ),
    "a header that does not": (
        {"k.cuh": "__global__ void f(real* x) {}", "a.cu": 'using real = float;\n#include "k.cuh"'},
        ["k.cuh:1 f(x) in a.cu"],
        [],
    ),
    "a template whose instances need more than its header": (
        {
            "k.cuh": "template <typename T> __global__ void f(T* x) { g(x); }\n"
            "template <typename T> __global__ void h(T* x) { x->more(); }",
            "a.cu": 'struct S { __device__ void more() {} };\n#include "k.cuh"\nvoid go() { h<S><<<1, 1>>>(nullptr); }',
        },
        ["k.cuh:1 f(x)", "k.cuh:2 h<S>(x) in a.cu h<S>"],
        [],
    ),
    "an instance that its header alone cannot make": (
        {
            "k.cuh": "template <typename T> __global__ void f(T* x) { *x = twice(*x); }",
            "a.cu": '__device__ float twice(float x) { return 2 * x; }\n#include "k.cuh"\n'
            "void go() { f<float><<<1, 1>>>(nullptr); }",
        },
        ["k.cuh:1 f<float>(x) in a.cu f<float>"],
        [],
    ),
    "what does not compile": (
        {"a.cu": "#include <nowhere.h>\n__global__ void f(float* x) {}"},
        ["a.cu:2 f(x): a.cu:1:10: fatal error: nowhere.h: No such file or directory"],
        [],
    ),
    "CUDA in texts of Python": (
        {
            "pkg/k.py": "A = '''\n__global__ void f(float* x) {}'''\n"
            "B = cupy.RawKernel('__global__ void g(int* x) {}', 'g')\n"
        },
        ["pkg/k.py:2 f(x)"],
        ["pkg/k.py:3: g in a text without a name: give the module a name for the text, or a function that returns it; "
         "see text= of Kernel"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, tmp_path: Path) -> None:
    """Each kernel once, where it is defined, by a name that `Kernel` takes."""
    files, expected, left = SHAPES[name]
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    (tmp_path / "gone.cu").unlink(missing_ok=True)
    finder = Finder(tmp_path)
    found = []
    for each in finder.kernels():
        text = f"{each.file}:{each.line} {each.entry}({', '.join(one.name for one in each.parameters)})"
        text += f" in {each.unit.file}" * (each.unit.file != each.file)
        found.append(" ".join([text, *each.instances]) + f": {each.unit.problem}" * bool(each.unit.problem))
    assert (found, finder.left) == (list(expected), list(left))


HOST = """
#define CEIL_DIV(M, N) \\
    (((M) + (N)-1) / (N))
#define BLOCK 128
constexpr int kTile{16};
typedef double real;
void other() { int threads = 32; }
void go(float* a, float* b, int n, int rows, int threads_) {
    dim3 block(32, 8), unused;
    dim3 grid(CEIL_DIV(n, block.x), (rows + 7u) / 8);
    int threads = 256; const size_t blocks = (n + threads - 1) / threads;
"""

#: A launch, the names of the kernel's parameters -> grid, block, dynamic shared memory; None where nobody knows.
LAUNCHES = {
    ("k<<<blocks, threads>>>(a, n)", "x length"): (("(length + 256 - 1) // 256",), (256,), ""),
    ("k<<<grid, block, BLOCK * sizeof(float)>>>(n, rows)", "w h"): (
        ("(w + 32 - 1) // 32", "(h + 7) // 8"), (32, 8), "512"),
    ("ns::k<float, BLOCK / 2><<<dim3(ceil_div(n, kTile), 2u), dim3{kTile, kTile}, n * 4>>>(n)", "n"): (
        ("(n + 16 - 1) // 16", "2"), (16, 16), "n * 4"),
    ("k<<<ceil(n / (float)threads), threads_, 0, stream>>>(n)", "n"): (("(n + 256 - 1) // 256",), None, ""),
    ("k<<<(int)std::ceil(rows / 256.0), static_cast<int>(BLOCK)>>>(rows)", "n"): (
        ("(n + 256 - 1) // 256",), (128,), ""),
    ("k<<<pick(n), {4, 4}, bytes>>>(n)", "n"): (None, (4, 4), None),
    ("k<<<1, 64, 64 * sizeof(real)>>>(n)", "n"): (("1",), (64,), "512"),
    ("k<<<rows, 1>>>(n)", "n"): (None, (1,), ""),
}  # fmt: skip


@pytest.mark.parametrize("case", LAUNCHES)
def test_launches(case: tuple[str, str]) -> None:
    """Macros, constants and variables are followed; what a comment launches is not."""
    text, names = case
    ((name, launch),) = launches("a.cu", f"{HOST}{text}; // k<<<1, 1>>>(a)\n}}")
    assert (name, launch.geometry(tuple(names.split()))) == ("k", LAUNCHES[case])


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        ("a.cu:f b.cu:f c.cu:g", "a_f b_f g"),
        ("x/a.cu:f y/a.cu:f", "a_f y_a_f"),
        ("a.cu:f_1 a.cu:f1 a.cu:compiled", "a_f_1 a_f1_2 a_compiled"),
        ("a.cu:f a.cu:isolated_f a.cu:f_times", "f a_isolated_f a_f_times"),
    ],
)
def test_names(kernels: str, names: str) -> None:
    """No two classes have one name, nor what stands beside them."""
    places = (each.split(":") for each in kernels.split())
    found = [Found(file, 1, name, name, (), (), Unit(file, "")) for file, name in places]
    assert " ".join(guesses.names(found)) == names
