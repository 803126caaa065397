"""Declared kernels: dtypes, bounds, geometry, references, and errors."""

from array import array
from collections import deque
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, outputs, scalar
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ArgumentError, KernelwatchError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from kernelwatch.kernel import Array, generators, geometry
from kernelwatch.kernel.arguments import ScalarArgument, to_dtype
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.jit_arguments import numba_arguments
from kernelwatch.kernel.launch import read_parameters, split_flags
from kernelwatch.kernel.ptx_module import find_entry
from kernelwatch.kernel.sources import make_text
from kernelwatch.suite import registry


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
        (lambda a: a[1:], ArgumentError, r"returns output with the shape \(3,\), not \(4,\)"),
    ],
)  # fmt: skip
def test_wrong_reference_is_an_error(reference: Any, error: type[Exception], message: str) -> None:
    vectors = [outputs("output", "size"), inputs("a", "size"), inputs("b", "size")]
    add = Kernel("add", vectors, 32, over=("size",), file="add.cu", reference=reference)
    with pytest.raises(error, match=message):
        add.compute_expected({name: np.zeros(4, np.float32) for name in ("output", "a", "b")}, {"size": 4})


def _bind_length(shape: Any) -> None:
    Kernel("k", [outputs("o", shape), "n"], 32, over=("n",), file="k.cu").bind_arguments("int8", n=5)


def _grid(**shape: Any) -> Geometry:
    return Kernel("k", [outputs("o", "w h")], file="k.cu", over=("w", "h"), **shape).compute_geometry("int8", w=5, h=9)


def _declare(**settings: Any) -> Kernel:
    return Kernel(
        **{"name": "k", "arguments": [outputs("o", "n")], "block": 32, "over": ["n"], "file": "k", **settings}
    )


@pytest.mark.parametrize("dtype", ["float32", "f4", np.float32, np.dtype("float32")])
def test_dtypes_are_dtypes_of_numpy(dtype: Any) -> None:
    kernel = _declare(dtypes=[dtype])
    assert kernel.check_dtype("float32") == "float32"
    with pytest.raises(UnknownDtypeError, match="k does not support int8, only float32"):
        kernel.check_dtype("int8")


@pytest.mark.parametrize(
    "block", [(8, 4), range(8, 3, -4), np.array([8, 4]), array("i", [8, 4]), lambda w: deque([8, 4])]
)
def test_lengths_of_a_block_are_a_sequence(block: Any) -> None:
    assert _grid(block=block).block == (8, 4, 1)


THREE: list[Any] = [outputs("o", "n"), inputs("a", "n"), inputs("b", "n")]

TWO_KERNELS = ".version 8.0\n.target sm_90\n.address_size 64\n.entry a() { ret; }\n.entry b() { ret; }"

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: registry.find_kernel("nope"), UnknownKernelError, "there is no kernel 'nope'; allowed are offset_copy"),
    (lambda: to_dtype("float31"), UnknownDtypeError, "'float31' is not a NumPy dtype"),
    (lambda: to_dtype(object), UnknownDtypeError, "holds Python objects"),
    (lambda: split_flags("-Xptxas '"), UnknownFlagsError, "cannot be split: No closing quotation; write them as on"),
    (lambda: _bind_length("n-5"), ArgumentError, r"is \(0,\) for n=5; lengths must be positive integers"),
    (lambda: _bind_length(lambda n: (n / 2,)), ArgumentError, r"is \(2.5,\) for n=5; lengths must be"),
    (lambda: _bind_length(lambda n: n - 5), ArgumentError, r"is \(0,\) for n=5; lengths must be positive integers"),
    (lambda: _bind_length("n//(n-5)"), ArgumentError, "has no value for n=5: integer division"),
    (lambda: inputs("i", "n", index="n-5").bind("int8", {"n": 5}), ArgumentError, "index='n-5' is 0 for n=5; it must"),
    (lambda: to_dtype("(2,"), UnknownDtypeError, "is not a NumPy dtype"),
    (lambda: ScalarArgument("s", (1, 2)).to_numpy(np.dtype("u4")), ArgumentError, "does not fit uint32"),
    (lambda: Kernel("k", [outputs("o", "n"), "n"], 32, grid=("n-5",), file="k.cu").compute_geometry("int8", n=5),
     ArgumentError, r"\(0, 1, 1\) blocks of \(32, 1, 1\) threads; each side must be at least 1, .* maximum is \(21474"),
    (lambda: _grid(block=0, tile=(8, 8)), ArgumentError, r"\(1, 2, 1\) blocks of \(0, 1, 1\) threads; each side must"),
    (lambda: _grid(block=0), ArgumentError, r"k: tile, by default the block, is \(0, 1, 1\); each side of over="),
    (lambda: _grid(block=(8, 8), tile=8), ArgumentError, r"k: tile, .* is \(8,\); each side of over= \(w, h\) need"),
    (lambda: _grid(block=(8, 8, 1, 2)), ArgumentError, r"k: block= must give at most three sides, .* \[8, 8, 1, 2\]"),
    (lambda: _grid(block=8, dynamic_shared="w-6"), ArgumentError, "k: dynamic_shared= must give a finite .* given: -1"),
    (lambda: _grid(block=8, grid=lambda w, h: w / 2), ArgumentError, r"k: grid= must give integers; given: 2\.5"),
    (lambda: _grid(block=lambda w: None), ArgumentError, "k: block= must give integers; given: None"),
    (lambda: _grid(block=lambda w: "w"), ArgumentError, "k: block= must give integers; given: 'w'"),
    (lambda: _grid(block=(8, 8), dynamic_shared=lambda w: None), ArgumentError, "at least 0; given: None"),
    (lambda: _grid(block=8, grid=("w", 1, 1, 1)), ArgumentError, r"at most three sides, x, y and z; given: \[5, 1, 1"),
    (lambda: Kernel("k", [outputs("o", "n"), "n"], 32, over=("n",), file="k.cu", options=["-Xptxas"]),
     ArgumentError, "k: options= ends with -Xptxas, which needs a value"),
    *(
        (partial(_declare, **{setting: "n"}), ArgumentError, f"k: {setting}= needs a list of .*; given: 'n'")
        for setting in ("arguments", "over", "options", "dtypes", "include", "read", "earlier")
    ),
    *(
        (partial(_declare, **{setting: [3]}), ArgumentError, rf"k: {setting}= needs .*; given: \[3\]")
        for setting in (
            *("over", "options", "dtypes", "include", "read", "earlier"),
            *("file", "text", "ptx", "entry", "prelude", "where", "constants"),
        )
    ),
    (partial(_declare, earlier=[{"n": 5}]), ArgumentError, "k: earlier= has n; allowed are name, arguments, block"),
    (partial(_declare, arguments=[scalar(cast(Any, 3))]), ArgumentError, "k: each of the arguments must be"),
    *(
        (partial(outputs, "o", cast(Any, shape)), ArgumentError, 'o: shape must be a string of expressions')
        for shape in (64, ("n", "m"))
    ),
    (lambda: _grid(block=lambda w: [[w], [w, w]]), ArgumentError, r"must give integers; given: \[5\], \[5, 5\]"),
    (lambda: _grid(block={}), UnknownDtypeError, "k: block= has no value for elements of 1 byte, only for none"),
    (lambda: numba_arguments(outputs("o", lambda n: (n,))), ArgumentError, "needs the shape as a string"),
    (lambda: to_dtype([]), UnknownDtypeError, "has no bytes"),
    (lambda: ScalarArgument("s", None).to_numpy(np.dtype("f4")), ArgumentError, "s: None does not fit float32"),
    *(
        (partial(_declare, name=name), ArgumentError, "is not a name of a kernel; write one without spaces and commas")
        for name in ("", "a b", "a,b", "-a")
    ),
    *(
        (partial(_declare, arguments=[outputs("o", "n"), name]), ArgumentError, "k: an argument cannot be called copy")
        for name in ("copy", "2*copy", scalar("c", value="copy"))
    ),
    *(
        (partial(_declare, arguments=[outputs("o", "n"), name]), ArgumentError, f"'{name}' is not a length; write")
        for name in ("a b", "a=b", "")
    ),
    *(
        (partial(outputs, "o", "n", ulp=ulp), ArgumentError, "o: ulp must be a number of at least 0, or a mapping from")
        for ulp in (-1, "1", {"float32": None})
    ),
    *(
        (partial(read_parameters, {axis: value}), ArgumentError, f"'{value}' does not fit the axis '{axis}'.*{number}$")
        for axis, value, number in (("n x m", "3x", "64x64"), ("n x m", "3", "64x64"), ("n", "a", "64"))
    ),
    (lambda: _declare(reference="np.ones"), ArgumentError, "reference= needs a function or a Kernel; given: 'np.ones'"),
    *(
        (partial(_declare, arguments=[*THREE, "n"], reference=_declare(arguments=arrays)), ArgumentError,
         f"k: the kernel in reference= takes {names}; it must take o, a, b, in this order; an entry of earlier= with")
        for arrays, names in ((THREE[:2], "o, a"), (THREE[::-1], "b, a, o"))
    ),
    (lambda: _declare(arguments=THREE, reference=_declare(arguments=THREE), earlier=[{"arguments": THREE[:2]}]),
     ArgumentError, "takes o, a, b; it must take o, a, in this order; an entry of earlier= .* needs its own reference"),
    (lambda: _declare(arguments=[outputs("o", "n"), 3]), ArgumentError, r"or scalar\(\); given: 3$"),
    (lambda: outputs("x", "n", values="none"), ArgumentError, "must be one of bits, exact, random, zeros, or a f"),
    (lambda: _sums(("int8", "int16")).check_dtype("int32"), UnknownDtypeError,
     "sums does not support int32, only int8, int16"),
    (lambda: find_entry(TWO_KERNELS, "scale"), UnknownKernelError,
     "no kernel scale; allowed are a, b; correct entry= .*; a template needs its arguments, as in scale<float>"),
    (lambda: find_entry(TWO_KERNELS, "scale<int>"), UnknownKernelError, "no kernel scale<int>; .* in earlier=$"),
    (lambda: _sums().nvcc_options("bool"), UnknownDtypeError, r"the dtype bool has no C\+\+ type; allowed are int8"),
    (lambda: KERNELS["offset_copy"].nvcc_options("S3"), UnknownDtypeError, r"of 3 bytes has no C\+\+ type"),
    (lambda: make_text(lambda: 5, {}), KernelwatchError,  # type: ignore[arg-type,return-value]
     "gives a value of type int; it must give the source text as a string"),
    (lambda: make_text("math:pi", {}), KernelwatchError, "'math:pi' gives a value of type float; it must give the"),
    (lambda: outputs("a", "0").bind("int8", {}), ArgumentError, r"a: the shape is \(0,\); lengths must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_errors_say_what_is_allowed(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


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
