"""Users' kernels with several outputs, own dtypes, indices, structs and constants, and their errors."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, in_and_out, inputs, outputs, scalar
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ArgumentError, UnknownArgumentError, UnknownKernelError
from kernelwatch.kernel import Launch, expressions
from kernelwatch.kernel.arguments import ParameterLayout
from kernelwatch.kernel.parameters import Parameter
from kernelwatch.kernel.ptx_module import PtxModule
from kernelwatch.suite import registry
from ptxcount.util import host_memory
from ptxcount.util.errors import CompileError, PtxError

PARTICLE = np.dtype([("x", "f4"), ("y", "f4"), ("id", "i4"), ("mass", "f4")])

SPLIT = """
struct Particle { float x, y; int id; float mass; };
__global__ void split(const Particle* p, float* x, int* id, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { x[i] = p[i].x; id[i] = p[i].id; }
}
"""
STENCIL = """
__constant__ float weights[2];
__global__ void stencil(float* out, const float* in, int w, int h) {
    __shared__ float tile[10][34];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    for (int r = threadIdx.y; r < 10; r += 8)
        for (int c = threadIdx.x; c < 34; c += 32) {
            const int gy = blockIdx.y * 8 + r, gx = blockIdx.x * 32 + c;
            tile[r][c] = gy < h + 2 && gx < w + 2 ? in[gy * (w + 2) + gx] : 0.f;
        }
    __syncthreads();
    const int r = threadIdx.y + 1, c = threadIdx.x + 1;
    if (x < w && y < h)
        out[y * w + x] = weights[0] * tile[r][c]
            + weights[1] * (tile[r - 1][c] + tile[r + 1][c] + tile[r][c - 1] + tile[r][c + 1]);
}
"""
HISTOGRAM = """
__global__ void histogram(unsigned* bins, const unsigned char* bin_of, long long n, int k) {
    extern __shared__ unsigned mine[];
    for (int b = threadIdx.x; b < k; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x)
        atomicAdd(&mine[bin_of[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < k; b += blockDim.x) atomicAdd(&bins[b], mine[b]);
}
"""
HIDDEN = """
namespace { __global__ void twice(float* out, const float* in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i];
} }
void called(float* x) { twice<<<1, 1>>>(x, x, 1); }
"""
GATHER = """
struct Affine { double scale; int shift; };
template <typename T> __global__ void gather(T* out, const T* from, const short* index, Affine a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = from[index[i]] * T(a.scale) + T(a.shift);
}
"""


def _stencil(image: Any) -> Any:
    middle, sides = image[1:-1, 1:-1], image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]
    return np.float32(0.5) * middle + np.float32(0.125) * sides


def _histogram(bins: Any, bin_of: Any, k: int) -> Any:
    return bins + np.bincount(bin_of, minlength=k).astype(np.uint32)


KERNELS: dict[str, tuple[Kernel, str, dict[str, int]]] = {
    "two outputs of an array of structs": (
        Kernel(
            "split", [inputs("p", "n", PARTICLE), outputs("x", "n", "float32"), outputs("id", "n", "int32"), "n"], 128,
            over=("n",), text=SPLIT, reference=lambda p: (p["x"], p["id"]),
        ), "float32", {"n": 1000},
    ),
    "a stencil with a halo in shared memory and constants": (
        Kernel(
            "stencil", [outputs("out", "h w"), inputs("image", "h+2 w+2"), "w", "h"], (32, 8), over=("w", "h"),
            text=STENCIL, constants={"weights": np.array([0.5, 0.125], np.float32)}, reference=_stencil,
        ), "float32", {"w": 70, "h": 21},
    ),
    "a histogram with shared atomics in dynamic shared memory": (
        Kernel(
            "histogram",
            [in_and_out("bins", "k", "uint32", values="zeros"), inputs("bin_of", "n", "uint8", index="k"), "n", "k"],
            64, grid=lambda n: (min(4, -(-n // 64)),), text=HISTOGRAM, dynamic_shared="4*k", reference=_histogram,
        ), "float32", {"n": 3000, "k": 50},
    ),
    "a kernel of an anonymous namespace": (
        Kernel(
            "twice", [outputs("out", "n"), inputs("x", "n"), "n"], 256,
            over=("n",), text=HIDDEN, reference=lambda x: 2 * x,
        ), "float32", {"n": 500},
    ),
    "a gather by indices of another dtype, with a struct by value, of a template": (
        Kernel(
            "gather",
            [
                outputs("out", "n"), inputs("table", "m"), inputs("index", "n", "int16", index="m", seed=3),
                scalar("affine", np.dtype([("scale", "f8"), ("shift", "i4")], align=True), value=(2.0, 3)), "n",
            ],
            256, over=("n",), text=GATHER, entry="gather<{T}>", reference=lambda table, index: table[index] * 2 + 3,
        ), "float64", {"n": 500, "m": 300},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_outputs_are_verified(name: str) -> None:
    """A reference with a wrong first element is contradicted. Without a reference, nothing is compared."""
    kernel, dtype, extents = KERNELS[name]
    counted_launch = launch_counts.count_launch(kernel, dtype, **extents)
    assert counted_launch.problem is None
    assert counted_launch.counters.totals()["load_requests"] > 0
    right = kernel.reference
    assert right is not None
    try:
        kernel.reference = lambda **variables: tuple(map(_spoil, _call_reference(right, variables)))
        assert "element [0" in str(launch_counts.count_launch(kernel, dtype, **extents).problem)
        kernel.reference = None
        assert launch_counts.count_launch(kernel, dtype, **extents).problem is None
    finally:
        kernel.reference = right


@pytest.mark.parametrize(
    ("parameter", "layout"),
    [
        (".param .u64 .ptr .global .align 4 x", ParameterLayout(8, 8, np.dtype("u8"))),
        (".param .align 4 .u64 .ptr x", ParameterLayout(8, 4, np.dtype("u8"))),
        (".param .s16 x", ParameterLayout(2, 2, np.dtype("i2"))),
        (".param .f64 x", ParameterLayout(8, 8, np.dtype("f8"))),
        (".param .align 8 .b8 x[12]", ParameterLayout(12, 8, None)),
        (".param .align 8 .b8 x [3][4]", ParameterLayout(12, 8, None)),
        (".param .b256 x", None),
    ],
)
def test_layouts_of_entry_points_are_read(parameter: str, layout: ParameterLayout | None) -> None:
    """Size, alignment and dtype of each parameter, also of private entry points."""
    text = f".version 9.0\n.target sm_90\n.address_size 64\n.entry one(.param .u32 n, {parameter})\n{{ ret; }}"
    with pytest.raises(ArgumentError, match=r"one: parameter x: \.b256 is not") if layout is None else nullcontext():
        assert PtxModule(text, "one").parameter_layout() == [(4, 4, np.dtype("u4")), layout]


def _call_reference(right: Any, variables: dict[str, Any]) -> tuple[Any, ...]:
    reference_outputs = expressions.call_with_known(right, variables)
    return reference_outputs if isinstance(reference_outputs, tuple) else (reference_outputs,)


def _spoil(array: Any) -> Any:
    """Return a copy whose first byte differs in one bit."""
    spoiled = np.array(array, order="C")
    spoiled.view(np.uint8).reshape(-1)[0] ^= 64
    return spoiled


def _copy(*arguments: Parameter | str, body: str, **fields: Any) -> Kernel:
    text = f"__global__ void copy(float* out, float* in, int n) {{ int i = threadIdx.x; {body} }}"
    return Kernel("copy", arguments, 32, grid=(1,), text=text, **fields)


COPY = "__global__ void copy(float* out, float* in, int n) { out[threadIdx.x] = in[threadIdx.x]; }"
#: Arguments of COPY.
WHOLE = (outputs("out", "n"), inputs("in", "n"), "n")


@pytest.mark.parametrize(
    "fields",
    [
        {"dynamic_shared": lambda n: n // 0},
        {"constants": {"table": lambda n: n // 0}},
        {"arguments": (outputs("out", lambda n: (n // 0,)), *WHOLE[1:])},
        {"arguments": (WHOLE[0], inputs("in", "n", values=lambda n: n // 0), "n")},
        {"arguments": (*WHOLE[:2], scalar("n", value=lambda: 1 // 0))},
    ],
)
def test_raising_functions_fail_their_launches(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    row: dict[str, Any] = {"arguments": WHOLE, "block": 32, "grid": ("1",), "text": COPY}
    kernel = Kernel("copy", **row | fields)
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    launch = Launch("copy", arguments=dict.fromkeys(kernel.parameters, 32))
    (outcome,) = launch_counts.count_launches([launch]).values()
    assert re.fullmatch(
        r"ArgumentError: the function at .*test_own\.py:\d+ raises ZeroDivisionError: .*", outcome.failure
    )
    launch_counts.hash_launches([launch])  # raises no error


def test_too_large_arrays_fail_their_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: 100)
    monkeypatch.setattr(registry, "find_kernel", lambda _: _copy(*WHOLE, body="out[i] = in[i];"))
    (outcome,) = launch_counts.count_launches([Launch("copy", arguments={"n": 32})]).values()
    needed = 4 * 32 * (3 + 1)  # the output takes memory three times
    assert outcome.failure.startswith(f"MemoryError: {needed} bytes of memory are needed")


def test_values_of_variables_use_integers_of_the_source() -> None:
    """The function of `table` takes SIZE, which `read` names, from the source."""
    text = f"#define SIZE 2\n__constant__ float table[SIZE]; {COPY.replace('= in', '= table[SIZE - 1] * in')}"
    constants = {"table": lambda SIZE: np.ones(SIZE, np.float32)}  # noqa: N803 -- a macro
    kernel = Kernel("copy", WHOLE, 32, grid=(1,), text=text, constants=constants, read=["SIZE"])
    arrays = launch_counts.count_launch(kernel, "float32", n=32).arrays
    assert (arrays["out"] == arrays["in"]).all()


def test_faults_of_kernels_are_reported() -> None:
    with pytest.raises(PtxError, match="argument 1"):  # an input is written
        launch_counts.count_launch(_copy(*WHOLE, body="in[i] = out[i];"), "float32", n=32)
    racing = "__shared__ float s[2]; s[i % 2] = in[i]; out[i] = s[1 - i % 2];"
    with pytest.raises(PtxError, match="race"):
        launch_counts.count_launch(_copy(*WHOLE, body=racing), "float32", n=32)
    left_out = _copy(*WHOLE, body="if (i) out[i] = in[i];", reference=lambda **arrays: arrays["in"])
    assert launch_counts.count_launch(left_out, "float32", n=32).problem == "element [0] of out was never written"


def test_wrong_declarations_are_reported() -> None:
    for shape in ("n/2", "n**2", "len(n)", "n +"):
        kernel = _copy(outputs("out", shape), *WHOLE[1:], body="out[i] = in[i];")
        with pytest.raises(ArgumentError, match="is not a length; write names, numbers"):
            launch_counts.count_launch(kernel, "float32", n=32)
    with pytest.raises(ArgumentError, match="one of file, text and ptx; given: none"):
        Kernel("none", WHOLE, 32, grid=(1,))


def test_unusable_sources_of_ptx_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match="raises ZeroDivisionError: "):
        launch_counts.count_launch(Kernel("made", WHOLE, 32, grid=(1,), ptx=lambda: str(1 // 0)), "float32", n=32)
    for absent in ("math:nothing", "nowhere:ptx"):
        with pytest.raises(UnknownKernelError, match=f"'{absent}' cannot be imported: "):
            launch_counts.count_launch(Kernel("made", WHOLE, 32, grid=(1,), ptx=absent), "float32", n=32)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "fails_on_import.py").write_text("raise OSError('no library')\n")
    with pytest.raises(CompileError, match="raises OSError: no library"):
        launch_counts.count_launch(Kernel("made", WHOLE, 32, grid=(1,), ptx="fails_on_import:x"), "float32", n=32)


@pytest.mark.parametrize(("arguments", "constants", "reason"), [
    (WHOLE[:2], {}, "copy: the entry point takes 3 arguments, but the declaration has 2; declare exactly these, .*"),
    ((*WHOLE[:2], scalar("n", "int64")), {}, "copy: n: the entry point takes 4 bytes, but the argument has 8; .*"),
    ((*WHOLE[:2], inputs("n", "4")), {}, "copy: n: the entry point takes 4 bytes, but .* 8; declare a scalar"),
    (WHOLE, {"absent": np.ones(2, "f4")}, "constants= has absent, which matches 0 variables .*; allowed are table"),
    (WHOLE, {"table": np.ones(3, "f4")}, "copy: variable table has 8 bytes; constants= gives 12; .*"),
])  # fmt: skip
def test_launches_with_other_parameters_are_skipped(
    arguments: Any, constants: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"__constant__ float table[2]; {COPY.replace('= in', '= table[0] * in')}"
    kernel = Kernel("copy", arguments, 32, grid=(1,), text=text, constants=constants)
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    (outcome,) = launch_counts.count_launches([Launch("copy", arguments={"n": 32})]).values()
    assert re.fullmatch(f"this commit does not have it: {reason}", outcome.missing)
    assert not outcome.failure
    if constants:
        with pytest.raises(UnknownArgumentError, match=reason):
            kernel.variable_bytes("float32", arch="sm_90", n=32)


def test_kernel_is_reference_of_another() -> None:
    """The wrong kernel copies in[0] to all elements, which is right for the first."""
    slow = _copy(*WHOLE, body="if (i == 0) for (int k = 0; k < n; ++k) out[k] = in[k];")
    kernels = (_copy(*WHOLE, body=body, reference=slow) for body in ("out[i] = in[i];", "out[i] = in[0];"))
    right, wrong = (launch_counts.count_launch(kernel, "float32", n=32).problem for kernel in kernels)
    assert right is None
    assert str(wrong).startswith("element [1] of out is")
