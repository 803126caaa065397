"""Declared kernels: dtypes, bounds, geometry, references, and errors."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, inputs, outputs, scalar
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Array, generators, geometry
from kernelwatch.kernel.geometry import Geometry


def _sums(dtypes: tuple[str, ...] = (), ulp: Any = None, reference: Any = None) -> Kernel:
    """Return a kernel with `size` sums of `count` squares each."""
    loop = "for (int k = 0; k < count; ++k) sum += in[i * count + k] * in[i * count + k];"
    return Kernel(
        "sums",
        [outputs("out", "size", ulp=ulp), inputs("in", "size*count"), scalar("size", least=1), scalar("count")],
        128,
        over=("size",),
        text=f"""extern "C" __global__ void sums(ELEMENT* out, const ELEMENT* in, long long size, long long count) {{
            const long long i = blockIdx.x * 128 + threadIdx.x;
            if (i < size) {{ ELEMENT sum = 0; {loop} out[i] = sum; }} }}""",
        options=["-DELEMENT={T}"],
        dtypes=dtypes,
        reference=reference,
    )


@pytest.mark.parametrize(
    ("dtype", "arch"), [("float16", "sm_80"), ("bfloat16", "sm_80"), ("bfloat16", "sm_100"), ("complex128", "sm_90")]
)
def test_dtypes_that_cpp_lacks_compile(dtype: str, arch: str) -> None:
    assert _sums().compile_cubin(dtype, arch=arch).resources.registers > 0


def test_ptxas_options_of_a_kernel_are_used() -> None:
    kernel, slow = _sums(), _sums()
    slow._options = (*slow._options, "-Xptxas", "-O0")
    expected = kernel.compile_cubin("int32", "-Xptxas -O0", arch="sm_90").data
    assert slow.compile_cubin("int32", "", arch="sm_90").data == expected
    assert kernel.compile_cubin("int32", "", arch="sm_90").data != expected


def test_float16_outputs_have_a_bound() -> None:
    def sums(size: int, count: int, **arrays: Array) -> Array:
        assert arrays["in"].dtype == np.float64
        return np.asarray((arrays["in"].reshape(size, count) ** 2).sum(axis=1))

    for bound, message in ((64, None), (0.01, "of out is")):
        kernel = _sums(ulp={"float16": bound}, reference=sums)
        problem = launch_counts.count_launch(kernel, "float16", size=64, count=400).problem
        assert problem is None if message is None else message in str(problem)


SIDES = {"rows": 1000, "columns": 130}
MATRIX: list[Any] = [outputs("output", "rows columns"), "rows", "columns"]
TILED: dict[str, Any] = {"block": (32, 8, 1), "tile": (32, 32)}
BY_ITEMSIZE: dict[str, Any] = {
    "block": {4: (256, 1, 1), 8: (512, 1, 1)},
    "tile": {4: (64, 64), 8: (64, 32)},
    "dynamic_shared": {4: 16384, 8: 100000},
}


@pytest.mark.parametrize(
    ("shape", "itemsize", "expected"),
    [
        (TILED, 4, Geometry((5, 32, 1), (32, 8, 1))),
        ({**TILED, "grid": geometry.persistent(1)}, 4, Geometry((132, 1, 1), (32, 8, 1))),
        ({**TILED, "grid": geometry.persistent(2)}, 4, Geometry((160, 1, 1), (32, 8, 1))),
        ({"block": (1, 1, 1), "grid": geometry.one_block}, 4, Geometry((1, 1, 1), (1, 1, 1))),
        ({"block": (256, 1, 1), "over": ("rows",)}, 4, Geometry((4, 1, 1), (256, 1, 1))),
        (BY_ITEMSIZE, 8, Geometry((3, 32, 1), (512, 1, 1), 100000)),  # tiles of 64 x 32
    ],
)
def test_grid_and_block_of_a_launch(shape: dict[str, Any], itemsize: int, expected: Geometry) -> None:
    """A persistent grid has at most 1 or 2 blocks per multiprocessor, of 132, and no more than the 5 x 32 tiles."""
    kernel = Kernel("k", MATRIX, file="k.cu", **({"over": ("columns", "rows")} | shape))
    assert kernel.compute_geometry(f"f{itemsize}", **SIDES) == expected


@pytest.mark.parametrize(
    ("block", "shared", "fixed"),
    [
        ((32, 8), 16, (256, 16)),
        ({4: 64, 8: 32}, {4: 8, 8: 16}, (64, 8)),
        ({8: 32}, 0, None),  # without an entry for 4 bytes
        ("rows", 0, None),
        (lambda rows: rows, 0, None),
        (32, "4*rows", None),
        (32, lambda rows: rows, None),
    ],
)
def test_fixed_block_depends_on_no_length(block: Any, shared: Any, fixed: tuple[int, int] | None) -> None:
    kernel = Kernel("k", MATRIX, block, over=("columns",), file="k.cu", dynamic_shared=shared)
    assert kernel.find_fixed_block("float32") == fixed


@pytest.mark.parametrize("shape", ["n", lambda n: (n,)])
def test_length_of_the_indexed_array_is_an_argument(shape: Any) -> None:
    kernel = Kernel("k", [outputs("o", "n"), inputs("i", shape, "int32", index="m")], 32, over=("n",), file="k.cu")
    assert kernel.parameters == ("n", "m")
    limits = [getattr(argument, "limit", None) for argument in kernel.bind_arguments("float32", n=5, m=9)]
    assert limits == [None, 9]  # of o, and of the indices i


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ({"file": "imaging/blur.cu"}, "imaging/blur.cu"),
        ({"text": "imaging.kernels:BLUR"}, "imaging/kernels.py"),
        ({"ptx": _sums}, f"{__name__.replace('.', '/')}.py"),
        ({"text": "__global__ void blur() { float x = 1.0f / 2; } // ..."}, "blur.cu"),
    ],
)
def test_origin_is_a_file(source: dict[str, Any], origin: str) -> None:
    assert Kernel("blur", MATRIX, 32, over=("rows",), **source).origin == Path(origin)


def _without_memory() -> Any:
    raise MemoryError("no room")


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (lambda a, b: a[b], ArgumentError, "add: its reference raises IndexError: arrays"),
        (lambda a, b: [[1], [1, 2]], ArgumentError, "add: its reference raises ValueError: setting an array element"),
        (_without_memory, MemoryError, "no room"),
        (lambda a, b: (a, b), ArgumentError, "its reference returns 2 arrays, but the outputs are output"),
        (lambda x, a, b=3, *c, **d: x, ArgumentError, "add: its reference takes x; allowed are size, output, a, b"),
        (lambda a: a.astype(str), ArgumentError, "add: its reference returns output with texts; return numbers"),
        (lambda a: a[1:], ArgumentError, r"returns output with the shape \(3,\), not \(4,\)"),
    ],
)  # fmt: skip
def test_wrong_reference_is_an_error(reference: Any, error: type[Exception], message: str) -> None:
    vectors = [outputs("output", "size"), inputs("a", "size"), inputs("b", "size")]
    add = Kernel("add", vectors, 32, over=("size",), file="add.cu", reference=reference)
    with pytest.raises(error, match=message):
        add.compute_expected({name: np.zeros(4, np.float32) for name in ("output", "a", "b")}, {"size": 4})


@pytest.mark.parametrize("is_generated", [True, False])
def test_generators_matter_for_generated_ptx(is_generated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"triton": "3.8.0", "numba": "0.62"}

    def find_version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(generators, "version", find_version)
    source: Any = {"ptx" if is_generated else "text": "a.b:make_text"}
    kernel = Kernel("k", MATRIX, 32, over=("columns",), **source)
    assert generators.list_generators([kernel]) == (installed if is_generated else {})
