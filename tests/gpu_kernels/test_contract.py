"""The contract of a kernel: names that packages rely on, geometry, traffic, dtypes, and refusals."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelwatch
from benchmarks import installed
from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, numba_arguments, outputs, scalar
from kernelwatch.counting import transactions
from kernelwatch.errors import ArgumentError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from kernelwatch.instrument import skip_reasons
from kernelwatch.kernel import Array, Operation, Row, geometry
from kernelwatch.kernel.arguments import ArrayArgument, ParameterLayout, ScalarArgument, pack_arguments, to_dtype
from kernelwatch.kernel.geometry import Extent, Geometry
from kernelwatch.kernel.launch import split_flags
from kernelwatch.suite import registry

#: What packages of commits import whose rows are the library's: these names stay.
IMPORTED = {
    "kernelwatch": "Kernel in_and_out inputs outputs",
    "kernelwatch.errors": "ArgumentError UnknownKernelError",
    "kernelwatch.kernel": "Array Kernel Operation Row Shape geometry",
    "kernelwatch.kernel.geometry": "Extent cover_or_finer one_block",
}

#: Operations as packages of before had them, by the kernel that has them today.
OLDER: dict[str, Operation] = {
    "offset_copy": Operation(
        "copy with an offset",
        {"size": 1, "offset": 0},
        lambda size, offset: ((size + offset,), (size + offset,)),
        lambda output, input, size, offset: np.concatenate([output[:offset], input[offset:]]),
        elements=lambda size, offset: 2 * size,
    ),
    "matmul_tiled": Operation(
        "matrix product",
        {"rows": 1, "inner": 1, "columns": 1},
        lambda rows, inner, columns: ((rows, columns), (rows, inner), (inner, columns)),
        lambda output, m, n, **lengths: m @ n,
        values="exact",
        names=("float16", "float32"),
        ulp={"float16": 0.5},
        flops=lambda rows, inner, columns: 2 * rows * inner * columns,
    ),
}


def test_names_that_older_packages_import() -> None:
    """They are there, and a kernel is one thing by both of its names."""
    for module, names in IMPORTED.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names.split()), module
    assert kernelwatch.Kernel is kernelwatch.kernel.Kernel


@pytest.mark.parametrize(("name", "dtype"), [("offset_copy", "int8"), ("matmul_tiled", "float16")])
def test_rows_of_older_packages(name: str, dtype: str) -> None:
    """A row of an operation compiles to today's machine code, and counts the same of the same launch."""
    today = KERNELS[name]
    file = Path("/site/gpu_kernels/kernels", today.source.name)
    old = Row(name, file, OLDER[name], today.block, today.over, tile=today.tile)
    arguments = {parameter: 33 + place for place, parameter in enumerate(old.parameters)}
    counted = [transactions.count_launch(kernel, dtype, **arguments) for kernel in (old, today)]
    assert [counted_launch.problem for counted_launch in counted] == [None, None]
    assert counted[0].counters.totals() == counted[1].counters.totals()
    facts = []
    for kernel in (old, today):
        numbers = [
            kernel.compute_geometry(dtype, **arguments),
            kernel.useful_bytes(dtype, **arguments),
            kernel.flops(**arguments),
        ]
        facts.append([*numbers, kernel.array_shapes(dtype, **arguments), kernel.compile_cubin(dtype, arch="sm_90")])
    assert facts[0] == facts[1]


@pytest.mark.parametrize("package", [{}, {"CONTRACT": 2}, TypeError("rows of before")], ids=str)
def test_older_packages_are_skipped(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of before contract 3, and of its first day, with a reason: no benchmark of them fails."""

    def import_module(_: str) -> Any:
        if isinstance(package, Exception):
            raise package
        return SimpleNamespace(KERNELS={"offset_copy": object()}, **package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(
        registry, "current_suite", lambda: SimpleNamespace(kernels=installed.kernels.__wrapped__, dtypes={})
    )
    reason = "the package defines no kernelwatch kernels"
    with pytest.raises(NotImplementedError, match=reason), skip_reasons.skip_unknown_names():
        registry.find_kernel("offset_copy")


def _sums(dtypes: tuple[str, ...] = (), ulp: Any = None, reference: Any = None) -> Kernel:
    """Make a kernel with sums of `count` squares each."""
    body = (
        "ELEMENT sum = 0; for (int k = 0; k < count; ++k) sum += in[i * count + k] * in[i * count + k]; out[i] = sum;"
    )
    return Kernel(
        "sums",
        [outputs("out", "size", ulp=ulp), inputs("in", "size*count"), scalar("size", least=1), scalar("count")],
        128,
        over=("size",),
        text=f"""extern "C" __global__ void sums(ELEMENT* out, const ELEMENT* in, long long size, long long count) {{
            const long long i = blockIdx.x * 128 + threadIdx.x; if (i < size) {{ {body} }} }}""",
        options=["-DELEMENT={T}"],
        dtypes=dtypes,
        reference=reference,
    )


@pytest.mark.parametrize(
    ("dtype", "arch"),
    [
        ("float16", "sm_80"),
        ("float32", "sm_90"),
        ("float64", "sm_100"),
        ("bfloat16", "sm_80"),
        ("bfloat16", "sm_100"),
        ("complex128", "sm_90"),
        ("int32", "sm_90"),
    ],
)
def test_every_dtype_computes(dtype: str, arch: str) -> None:
    """By CUDA's own headers where C++ has no such type; as machine code of its own."""
    assert _sums().compile_cubin(dtype, arch=arch).resources.registers > 0


def test_a_half_is_near() -> None:
    """Sums that round are compared with float64, within the bound that the output states, and not beyond it."""

    def sums(size: int, count: int, **arrays: Array) -> Array:
        assert arrays["in"].dtype == np.float64
        return np.asarray((arrays["in"].reshape(size, count) ** 2).sum(axis=1))

    for bound, message in ((64, None), (0.01, "of out is")):
        kernel = _sums(ulp={"float16": bound}, reference=sums)
        problem = transactions.count_launch(kernel, "float16", size=64, count=400).problem
        assert problem is None if message is None else message in str(problem)


#: Kernel, dtype, arguments -> grid and block, x first, and the bytes and operations that are useful.
LAUNCHES: list[tuple[str, str, dict[str, Any], Extent, Extent, int, int]] = [
    ("offset_copy", "int8", {"size": 257, "offset": 9}, (2, 1, 1), (256, 1, 1), 514, 0),
    ("offset_copy", "int8", {"size": np.uint8(200), "offset": np.uint8(100)}, (1, 1, 1), (256, 1, 1), 400, 0),
    ("offset_copy", "int8", {"size": 2**33, "offset": 0}, (2**25, 1, 1), (256, 1, 1), 2**34, 0),
    ("stride_copy", "complex128", {"size": 256, "stride": 9}, (1, 1, 1), (256, 1, 1), 8192, 0),
    ("transpose_read_coalesced", "int8", {"rows": 65, "columns": 32}, (1, 3, 1), (32, 32, 1), 4160, 0),
    ("transpose_write_coalesced", "int8", {"rows": 65, "columns": 32}, (3, 1, 1), (32, 32, 1), 4160, 0),
    ("transpose_read_coalesced", "int8", {"rows": 65535 * 32, "columns": 1}, (1, 65535, 1), (32, 32, 1), 4194240, 0),
    (
        *("transpose_read_coalesced", "int8", {"rows": 65535 * 32 + 1, "columns": 1}),
        *((1, 32768, 2), (32, 32, 1), 4194242, 0),
    ),
    (
        *("transpose_read_coalesced", "int8", {"rows": 65536 * 32 + 1, "columns": 1}),
        *((1, 32769, 2), (32, 32, 1), 4194306, 0),
    ),
    (
        *("transpose_read_coalesced", "int8", {"rows": np.int32(65536), "columns": np.int32(65536)}),
        *((2048, 2048, 1), (32, 32, 1), 2 * 65536**2, 0),
    ),
    ("transpose_serial", "float64", {"rows": 288, "columns": 288}, (1, 1, 1), (1, 1, 1), 16 * 288**2, 0),
    ("transpose_row_per_thread", "int8", {"rows": 257, "columns": 9}, (9, 1, 1), (32, 1, 1), 4626, 0),
    ("add_uncoalesced", "float64", {"size": 1025}, (2, 1, 1), (32, 32, 1), 24600, 1025),
    *(
        ("matmul_tiled", "float16", {"rows": 10, "inner": 20, "columns": columns}, grid, (32, 8, 1), useful, flops)
        for columns, grid, useful, flops in ((30, (1, 1, 1), 2200, 12000), (33, (2, 1, 1), 2380, 13200))
    ),
    # The vectorized transpose: large tiles where they are many, squares where not, and others for ragged rows.
    *(
        (
            *("transpose_vectorized", dtype, {"rows": rows, "columns": columns}, grid, (256, 1, 1)),
            *(2 * rows * columns * np.dtype(dtype).itemsize, 0),
        )
        for rows, columns, dtype, grid in (
            (256, 256, "float32", (8, 8, 1)),
            (512, 512, "float32", (8, 8, 1)),
            (1000, 700, "float32", (16, 22, 1)),
            (5003, 2999, "float32", (79, 94, 1)),
            (5003, 2999, "int8", (79, 25, 1)),
            (2048, 1024, "int8", (32, 4, 1)),
            (2048, 1024, "float16", (16, 8, 1)),
            (2048, 1024, "complex128", (64, 64, 1)),
            (1024, 1023, "complex128", (74, 32, 1)),
            (257, 251, "float32", (9, 8, 1)),
            (8, 65536 * 64, "float32", (1, 32768, 2)),
        )
    ),
]


@pytest.mark.parametrize(("name", "dtype", "arguments", "grid", "block", "useful", "flops"), LAUNCHES)
def test_launches(
    name: str, dtype: str, arguments: dict[str, Any], grid: Extent, block: Extent, useful: int, flops: int
) -> None:
    """The grid covers every element with whole blocks, within CUDA's limits; each counts once in and once out."""
    kernel = KERNELS[name]
    assert kernel.compute_geometry(dtype, **arguments) == Geometry(grid, block)
    assert (kernel.useful_bytes(dtype, **arguments), kernel.flops(**arguments)) == (useful, flops)


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
        (BY_ITEMSIZE, 8, Geometry((3, 32, 1), (512, 1, 1), 100000)),
    ],
)
def test_geometry(shape: dict[str, Any], itemsize: int, expected: Geometry) -> None:
    """Tiles apart from threads, one block, a thread a row, blocks that stay, all by item size."""
    kernel = Kernel("k", MATRIX, file="k.cu", **({"over": ("columns", "rows")} | shape))
    assert kernel.compute_geometry(f"f{itemsize}", **SIDES) == expected


def test_what_numba_takes() -> None:
    """Of an array: two addresses of Python's, elements, an element's bytes, the address, lengths, and strides."""
    kernel = Kernel(
        "k", numba_arguments(outputs("out", "rows columns"), "rows", "columns"), 32, over=("rows",), file="k.cu"
    )
    bound_values = [
        getattr(argument, "value", argument.name) for argument in kernel.bind_arguments("float64", rows=3, columns=5)
    ]
    assert bound_values == [0, 0, 15, 8, "out", 3, 5, 40, 8, 3, 5]


@pytest.mark.parametrize(
    ("block", "shared", "fixed"),
    [
        ((32, 8), 16, (256, 16)),
        ({4: 64, 8: 32}, {4: 8, 8: 16}, (64, 8)),
        ("rows", 0, None),
        (lambda rows: rows, 0, None),
        (32, "4*rows", None),
        (32, lambda rows: rows, None),
    ],
)
def test_blocks_that_depend_on_nothing(block: Any, shared: Any, fixed: tuple[int, int] | None) -> None:
    """Threads and dynamic shared memory of a block, where no launch must say how long something is."""
    kernel = Kernel("k", MATRIX, block, over=("columns",), file="k.cu", dynamic_shared=shared)
    assert kernel.find_fixed_block("float32") == fixed


#: Arguments that are refused, in int8, or complex128 -> with what was given, what is allowed, and what to do.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("offset_copy", {"size": 0, "offset": 0}, "size must be an integer of at least 1; given: 0"),
    ("offset_copy", {"size": 5, "offset": -1}, "offset must be an integer of at least 0; given: -1"),
    ("stride_copy", {"size": 5, "stride": 1.5}, "stride must be an integer of at least 1; given: 1.5"),
    ("stride_copy", {"size": True, "stride": 1}, "size must be an integer of at least 1; given: True"),
    ("stride_copy", {"size": np.True_, "stride": 1}, "size must be an integer of at least 1; given: "),
    ("stride_copy", {"size": 5, "offset": 1}, "takes stride, size; given: offset, size"),
    ("offset_copy", {"size": 5, "offset": 2**63 - 1}, "signed 64-bit addressing allows 9223372036854775807"),
    ("offset_copy", {"size": 5, "offset": 2**63}, "offset must fit a signed 64-bit integer, at most 92"),
    ("stride_copy", {"size": 1, "stride": 2**70}, "stride must fit a signed 64-bit integer, at most 92"),
    ("stride_copy", {"size": 2, "stride": 2**60}, "16 bytes an element"),
    ("transpose_read_coalesced", {"rows": np.int64(2**33), "columns": np.int64(2**33)}, "64-bit addressing allows"),
    ("offset_copy", {"size": 2**40, "offset": 0}, "size may be at most 549755813632"),
    ("transpose_read_coalesced", {"rows": 1, "columns": 2**37}, "columns may be at most 68719476704"),
    ("transpose_read_coalesced", {"rows": 2**38, "columns": 1}, "rows may be at most 137434759200"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_bad_arguments(name: str, arguments: dict[str, Any], message: str) -> None:
    """An array that fits in int8, up to the last byte that there is, may outgrow 64-bit addressing in complex128."""
    KERNELS["offset_copy"].bind_arguments("int8", size=1, offset=2**63 - 2)
    KERNELS["stride_copy"].bind_arguments("int8", size=2, stride=2**60)
    dtype = "complex128" if "16" in message.split(maxsplit=1)[0] else "int8"
    with pytest.raises(ArgumentError, match=message):
        KERNELS[name].bind_arguments(dtype, **arguments), KERNELS[name].compute_geometry(dtype, **arguments)


def _make_kernel_of_length(shape: Any) -> Kernel:
    return Kernel("k", [outputs("o", shape), "n"], 32, over=("n",), file="k.cu")


def test_a_length_at_several_places() -> None:
    """A square product takes its side three times; two other arguments of one name are refused."""
    square = Kernel("k", [outputs("c", "n n"), inputs("a", "n n"), "n", "n", "n"], 32, over=("n",), file="k.cu")
    assert square.parameters == ("n",)
    assert [getattr(argument, "value", argument.name) for argument in square.bind_arguments("float32", n=4)] == [
        "c",
        "a",
        4,
        4,
        4,
    ]
    for twice in ([inputs("c", "n")], [scalar("n", "int32"), "n"], ["c"]):
        with pytest.raises(ArgumentError, match="two arguments have the same name; given: "):
            Kernel("k", [outputs("c", "n"), *twice], 32, over=("n",), file="k.cu")


def _without_memory() -> Any:
    raise MemoryError("no room")


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (lambda a, b: a[b], ArgumentError, "add: its reference raises IndexError: arrays"),
        (_without_memory, MemoryError, "no room"),
        (lambda a, b: (a, b), ArgumentError, "its reference returns 2 arrays; the outputs are output"),
        (lambda a: a[1:], ArgumentError, r"returns output with the shape \(3,\), not \(4,\)"),
    ],
)
def test_a_reference_that_fails_is_named(reference: Any, error: type[Exception], message: str) -> None:
    """With what it did; want of memory stays want of memory."""
    vectors = [outputs("output", "size"), inputs("a", "size"), inputs("b", "size")]
    add = Kernel("add", vectors, 32, over=("size",), file="add.cu", reference=reference)
    with pytest.raises(error, match=message):
        add.compute_expected({name: np.zeros(4, np.float32) for name in ("output", "a", "b")}, {"size": 4})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: registry.find_kernel("nope"),
            UnknownKernelError,
            "kernel 'nope' is not known; allowed are offset_copy",
        ),
        (lambda: to_dtype("float31"), UnknownDtypeError, "'float31' is not a NumPy dtype"),
        (lambda: to_dtype(object), UnknownDtypeError, "holds Python objects"),
        (lambda: split_flags("-Xptxas '"), UnknownFlagsError, "are no words: No closing quotation; write them as on"),
        (
            lambda: _make_kernel_of_length("n-5").bind_arguments("int8", n=5),
            ArgumentError,
            r"is \(0,\) here; lengths are positive integers",
        ),
        (
            lambda: _make_kernel_of_length(lambda n: (n / 2,)).bind_arguments("int8", n=5),
            ArgumentError,
            r"is \(2.5,\) here; lengths are",
        ),
        (lambda: outputs("x", "n", values="nothing"), ArgumentError, "values are bits, exact, random, zeros or a func"),
        (
            lambda: _sums(("int8", "int16")).check_dtype("int32"),
            UnknownDtypeError,
            "sums has no int32; it has int8, int16",
        ),
        (lambda: _sums().nvcc_options("bool"), UnknownDtypeError, "the dtype bool have no C\\+\\+ type; those of int8"),
        (
            lambda: KERNELS["offset_copy"].nvcc_options("S3"),
            UnknownDtypeError,
            "of 3 bytes have no C\\+\\+ type",
        ),
    ],
)
def test_unknown_names(call: Any, error: type[Exception], message: str) -> None:
    """Unknown names are refused with the names that exist."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("value", "type_text", "expected"),
    [
        (5, "u4", np.uint32(5)),
        (-1, "u4", np.int32(-1)),
        (-(2**31), "u4", np.int32(-(2**31))),
        (-(2**31) - 1, "u4", None),
        (2**32 - 1, "u4", np.uint32(2**32 - 1)),
        (2**32, "u4", None),
        (1.5, "i4", None),
        (1.5, "u4", None),
        (0.5, "f4", np.float32(0.5)),
    ],
)
def test_values(value: float, type_text: str, expected: np.generic | None) -> None:
    """A number has the type that the entry point takes; PTX does not tell signed from unsigned ones."""
    argument = ScalarArgument("n", value)
    if expected is None:
        with pytest.raises(ArgumentError, match=r"n: .* does not fit "):
            argument.to_numpy(np.dtype(type_text))
    else:
        typed = argument.to_numpy(np.dtype(type_text))
        assert (typed, typed.dtype) == (expected, expected.dtype)


def test_what_numba_takes_of_an_array() -> None:
    """Two addresses of Python's, elements, an element's bytes, the address, lengths and strides in bytes."""
    arguments = numba_arguments(outputs("x", "h w 2", "float64"), "w")
    bound = Kernel("k", arguments, 32, over=("w",), file="k.cu").bind_arguments("int8", h=3, w=5)
    values = [argument.value if isinstance(argument, ScalarArgument) else argument.shape for argument in bound]
    assert values == [0, 0, 30, 8, (3, 5, 2), 3, 5, 2, 80, 16, 8, 5]


def test_arguments_lie_as_an_entry_point_takes_them() -> None:
    """Each at a multiple of its alignment; what does not fit is told."""
    array = ArrayArgument("x", (3,), np.dtype("f4"), "in", "bits")
    kinds = (("i", 1), ("u", 8), ("i", 4), ("f", 8))
    layout: list[ParameterLayout] = [(size, size, np.dtype(f"{kind}{size}")) for kind, size in kinds]
    bound: list[Any] = [ScalarArgument("a", 1), array, ScalarArgument("n", 2), ScalarArgument("y", 0.5)]
    packed, places = pack_arguments(bound, layout)
    assert packed == struct.pack("<bxxxxxxxQixxxxd", 1, 0, 2, 0.5)
    assert places == (8,)
    with pytest.raises(ArgumentError, match="the entry point takes 3 arguments; declared are 4"):
        pack_arguments(bound, layout[:3])
    with pytest.raises(ArgumentError, match="y: the entry point takes 4 bytes there; given are 8"):
        pack_arguments([ScalarArgument("y", 0.5, np.dtype("f8"))], layout[2:3])
