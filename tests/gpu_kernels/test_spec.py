"""What a kernel is: geometry, traffic, references and the refusal of bad arguments."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpu_kernels import KERNELS, MIXED
from kernelwatch import Kernel, inputs, outputs, suite
from kernelwatch.errors import ArgumentError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from kernelwatch.kernel.arguments import ScalarArgument, dtype_of
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.launch import words
from tests.cases import AWKWARD

#: How kernels' names begin -> (the element of the output, the element of the input) that each move is, by arguments.
MOVES: dict[str, Callable[..., Iterator[tuple[Any, Any]]]] = {
    "transpose": lambda rows, columns: (
        ((column, row), (row, column)) for row, column in itertools.product(range(rows), range(columns))
    ),
    "offset": lambda size, offset: ((i + offset, i + offset) for i in range(size)),
    "stride": lambda size, stride: ((i * stride, i * stride) for i in range(size)),
}


@pytest.mark.parametrize(
    ("name", "arguments"), [case for case in AWKWARD if case[0].partition("_")[0] in MOVES], ids=str
)
def test_reference_against_loops(name: str, arguments: dict[str, int]) -> None:
    """NumPy's reference is what a plain loop over the moves says."""
    kernel = KERNELS[name]
    output_shape, input_shape = kernel.arrays(**arguments)
    source = np.random.default_rng(0).integers(-128, 128, input_shape).astype(np.int8)
    before = np.full(output_shape, 77, np.int8)
    expected = before.copy()
    for to, of in MOVES[name.partition("_")[0]](**arguments):
        expected[to] = source[of]
    held = source.copy()
    (found,) = kernel.expected({"output": before, "input": source}, arguments)
    assert np.array_equal(found, expected)
    assert (source == held).all(), "the reference changed its input"


@pytest.mark.parametrize(
    ("name", "arguments", "geometry"),
    [
        ("offset_copy", {"size": 257, "offset": 9}, Geometry((2, 1, 1), (256, 1, 1))),
        ("stride_copy", {"size": 256, "stride": 9}, Geometry((1, 1, 1), (256, 1, 1))),
        ("transpose_read_coalesced", {"rows": 65, "columns": 32}, Geometry((1, 3, 1), (32, 32, 1))),
        ("transpose_write_coalesced", {"rows": 65, "columns": 32}, Geometry((3, 1, 1), (32, 32, 1))),
        ("transpose_read_coalesced", {"rows": 65535 * 32, "columns": 1}, Geometry((1, 65535, 1), (32, 32, 1))),
        ("transpose_read_coalesced", {"rows": 65535 * 32 + 1, "columns": 1}, Geometry((1, 32768, 2), (32, 32, 1))),
        ("transpose_read_coalesced", {"rows": 65536 * 32 + 1, "columns": 1}, Geometry((1, 32769, 2), (32, 32, 1))),
        ("offset_copy", {"size": 2**33, "offset": 0}, Geometry((2**25, 1, 1), (256, 1, 1))),
        ("add_uncoalesced", {"size": 1025}, Geometry((2, 1, 1), (32, 32, 1))),
        ("transpose_serial", {"rows": 2880, "columns": 2880}, Geometry((1, 1, 1), (1, 1, 1))),
        ("transpose_row_per_thread", {"rows": 257, "columns": 9}, Geometry((9, 1, 1), (32, 1, 1))),
    ],
)
def test_geometry(name: str, arguments: dict[str, int], geometry: Geometry) -> None:
    """The grid covers every element with whole blocks, and stays within CUDA's limits."""
    assert KERNELS[name].geometry(**arguments) == geometry


@pytest.mark.parametrize(
    ("name", "dtype", "arguments", "useful"),
    [
        ("offset_copy", "float32", {"size": 1000, "offset": 31}, 8000),
        ("stride_copy", "complex128", {"size": 1000, "stride": 32}, 32000),
        ("transpose_read_write_coalesced", "int8", {"rows": 12800, "columns": 12800}, 327_680_000),
        ("transpose_read_coalesced", "int8", {"rows": np.int32(65536), "columns": np.int32(65536)}, 2 * 65536**2),
        ("offset_copy", "int8", {"size": np.uint8(200), "offset": np.uint8(100)}, 400),
        ("add_uncoalesced", "float64", {"size": 1000}, 24000),
        ("matmul_tiled", "float16", {"rows": 10, "inner": 20, "columns": 30}, 2 * (300 + 200 + 600)),
    ],
)
def test_useful_bytes(name: str, dtype: str, arguments: dict[str, int], useful: int) -> None:
    """Each element counts once in and once out, whatever lies between."""
    assert KERNELS[name].useful_bytes(dtype, **arguments) == useful


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("offset_copy", {"size": 0, "offset": 0}, "size must be an integer of at least 1; given: 0"),
        ("offset_copy", {"size": -5, "offset": 0}, "size must be an integer of at least 1; given: -5"),
        ("offset_copy", {"size": 5, "offset": -1}, "offset must be an integer of at least 0; given: -1"),
        ("stride_copy", {"size": 5, "stride": 0}, "stride must be an integer of at least 1; given: 0"),
        ("stride_copy", {"size": 5, "stride": 1.5}, "stride must be an integer of at least 1; given: 1.5"),
        ("stride_copy", {"size": True, "stride": 1}, "size must be an integer of at least 1; given: True"),
        ("stride_copy", {"size": 5, "offset": 1}, "takes stride, size; given: offset, size"),
        ("offset_copy", {"size": 5, "offset": 2**63 - 1}, "signed 64-bit addressing allows 9223372036854775807"),
        ("offset_copy", {"size": 5, "offset": 2**63}, "offset must fit a signed 64-bit integer, at most 92"),
        ("stride_copy", {"size": 1, "stride": 2**70}, "stride must fit a signed 64-bit integer, at most 92"),
        ("transpose_read_coalesced", {"rows": np.int64(2**33), "columns": np.int64(2**33)}, "64-bit addressing allows"),
        ("stride_copy", {"size": np.True_, "stride": 1}, "size must be an integer of at least 1; given: "),
        ("stride_copy", {"size": 2**32, "stride": 2**32}, "signed 64-bit addressing allows"),
        ("offset_copy", {"size": 2**40, "offset": 0}, "size may be at most 549755813632"),
        ("transpose_read_coalesced", {"rows": 1, "columns": 2**37}, "columns may be at most 68719476704"),
        ("transpose_read_coalesced", {"rows": 2**38, "columns": 1}, "rows may be at most 137434759200"),
        ("transpose_read_coalesced", {"rows": 2**32, "columns": 2**32}, "signed 64-bit addressing allows"),
    ],
)
def test_bad_arguments(name: str, arguments: dict[str, Any], message: str) -> None:
    """Bad arguments are refused with what was given, what is allowed, and what to do."""
    kernel = KERNELS[name]
    with pytest.raises(ArgumentError, match=message):
        kernel.bound("int8", **arguments), kernel.geometry("int8", **arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "flops"),
    [
        ("add_coalesced", {"size": 1000}, 1000),
        ("matmul_tiled", {"rows": 10, "inner": 20, "columns": 30}, 12000),
        ("offset_copy", {"size": 1000, "offset": 1}, 0),
    ],
)
def test_flops(name: str, arguments: dict[str, int], flops: int) -> None:
    """A product and a sum are two operations; to move is none."""
    assert KERNELS[name].flops(**arguments) == flops


def test_item_size_counts_towards_overflow() -> None:
    """An array that fits in int8 may outgrow 64-bit addressing in complex128."""
    kernel = KERNELS["stride_copy"]
    kernel.bound("int8", size=2, stride=2**60)
    KERNELS["offset_copy"].bound("int8", size=1, offset=2**63 - 2)  # the last byte that there is
    with pytest.raises(ArgumentError, match="16 bytes an element"):
        kernel.bound("complex128", size=2, stride=2**60)


def _without_memory() -> Any:
    raise MemoryError("no room")


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (lambda a, b: a[b], ArgumentError, "add: its reference raises IndexError: arrays"),
        (_without_memory, MemoryError, "no room"),
        (lambda a, b: (a, b), ArgumentError, "its reference returns 2 arrays; the outputs are output"),
        (lambda a: a[1:], ArgumentError, r"gives output the shape \(3,\), which has \(4,\)"),
    ],
)
def test_a_reference_that_fails_is_named(reference: Any, error: type[Exception], message: str) -> None:
    """With what it did; want of memory stays want of memory."""
    vectors = [outputs("output", "size"), inputs("a", "size"), inputs("b", "size")]
    add = Kernel("add", vectors, 32, over=("size",), file="add.cu", reference=reference)
    with pytest.raises(error, match=message):
        add.expected({name: np.zeros(4, np.float32) for name in ("output", "a", "b")}, {"size": 4})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: suite.kernel("nope"), UnknownKernelError, "kernel 'nope' is not known; allowed are offset_copy"),
        (lambda: dtype_of("float31"), UnknownDtypeError, "'float31' is not a NumPy dtype"),
        (lambda: dtype_of(object), UnknownDtypeError, "holds Python objects"),
        (lambda: words("-Xptxas '"), UnknownFlagsError, "are no words: No closing quotation; write them as on"),
    ],
)
def test_unknown_names(call: Any, error: type[Exception], message: str) -> None:
    """Unknown names are refused with the names that exist."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("value", "taken", "found"),
    [
        (5, "u4", np.uint32(5)),
        (-1, "u4", np.int32(-1)),
        (-(2**31), "u4", np.int32(-(2**31))),
        (-(2**31) - 1, "u4", None),
        (2**32 - 1, "u4", np.uint32(2**32 - 1)),
        (2**32, "u4", None),
        (1.5, "i4", None),
        (0.5, "f4", np.float32(0.5)),
    ],
)
def test_values(value: float, taken: str, found: np.generic | None) -> None:
    """A number has the type that the entry point takes; PTX does not tell signed from unsigned ones."""
    one = ScalarArgument("n", value)
    if found is None:
        with pytest.raises(ArgumentError, match=r"n: .* is no "):
            one.typed(np.dtype(taken))
    else:
        typed = one.typed(np.dtype(taken))
        assert (typed, typed.dtype) == (found, found.dtype)


def test_every_kernel_opens_with_its_story() -> None:
    """Each source says idea, access pattern, origin and how to compile it, and holds its kernels' entry points."""
    for kernel in KERNELS.values():
        source = kernel.source_text()
        if kernel.name in MIXED:
            continue
        assert [line.split()[1] for line in source.splitlines() if line[3:4].isupper()][:1] == ["Idea:"]
        for heading in ("// Pattern:", "// Origin:", "// Run:"):
            assert heading in source, f"{kernel.source} lacks {heading}"
        assert re.search(rf'extern "C" __global__ void (__launch_bounds__\(.*\) )?{kernel.name}\(', source), kernel.name
