"""Arguments of kernels: allowed values, types, layouts, and those of Numba and Triton."""

import struct
from typing import Any

import numpy as np
import pytest

from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, numba_arguments, outputs, scalar, triton_arguments
from kernelwatch.errors import ArgumentError
from kernelwatch.kernel.arguments import ArrayArgument, ParameterLayout, ScalarArgument, pack_arguments
from kernelwatch.kernel.ptx_module import PtxModule

REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("offset_copy", "int8", {"size": 0, "offset": 0}, "size must be an integer of at least 1; given: 0"),
    ("offset_copy", "int8", {"size": 5, "offset": -1}, "offset must be an integer of at least 0; given: -1"),
    ("stride_copy", "int8", {"size": 5, "stride": 1.5}, "stride must be an integer of at least 1; given: 1.5"),
    ("stride_copy", "int8", {"size": True, "stride": 1}, "size must be an integer of at least 1; given: True"),
    ("stride_copy", "int8", {"size": np.True_, "stride": 1}, "size must be an integer of at least 1; given: "),
    ("stride_copy", "int8", {"size": 5, "offset": 1}, "takes stride, size; given: offset, size"),
    ("offset_copy", "int8", {"size": 5, "offset": 2**63 - 1}, f"signed 64-bit addressing allows {2**63 - 1}"),
    ("offset_copy", "int8", {"size": 5, "offset": 2**63}, "offset must fit a signed 64-bit integer, at most 92"),
    ("stride_copy", "int8", {"size": 1, "stride": 2**70}, "stride must fit a signed 64-bit integer, at most 92"),
    ("stride_copy", "complex128", {"size": 2, "stride": 2**60}, "16 bytes per element"),
    ("transpose_read_coalesced", "int8", {"rows": np.int64(2**33), "columns": np.int64(2**33)}, "addressing allows"),
    # A grid has at most 2**31 - 1 blocks along x, and 65535 along y and z.
    ("offset_copy", "int8", {"size": 2**40, "offset": 0}, f"size may be at most {256 * (2**31 - 1)}"),
    ("transpose_read_coalesced", "int8", {"rows": 1, "columns": 2**37}, f"columns may be at most {32 * (2**31 - 1)}"),
    ("transpose_read_coalesced", "int8", {"rows": 2**38, "columns": 1}, f"rows may be at most {32 * 65535 * 65535}"),
]


@pytest.mark.parametrize(("name", "dtype", "arguments", "message"), REFUSED)
def test_invalid_arguments_are_refused(name: str, dtype: str, arguments: dict[str, Any], message: str) -> None:
    kernel = KERNELS[name]
    with pytest.raises(ArgumentError, match=message):
        kernel.bind_arguments(dtype, **arguments), kernel.compute_geometry(dtype, **arguments)


def test_largest_arrays_are_allowed() -> None:
    """An array of size + offset = 2**63 - 1 bytes; and 2**60 + 1 elements, which are too many only in complex128."""
    KERNELS["offset_copy"].bind_arguments("int8", size=1, offset=2**63 - 2)
    KERNELS["stride_copy"].bind_arguments("int8", size=2, stride=2**60)


def test_numbers_may_be_expressions() -> None:
    expressions = {"n": 5, "2*n": 10, "(n+3)//4": 2, "n<<1": 10, "-n": -5, "7": 7}
    kernel = Kernel("k", [outputs("c", "n"), *expressions], 32, over=("n",), file="k.cu")
    assert kernel.parameters == ("n",)
    numbers = kernel.bind_arguments("float32", n=5)[1:]
    assert [getattr(number, "value", None) for number in numbers] == [*expressions.values()]


def test_only_lengths_may_be_repeated() -> None:
    square = Kernel("k", [outputs("c", "n n"), inputs("a", "n n"), "n", "n", "n"], 32, over=("n",), file="k.cu")
    assert square.parameters == ("n",)
    bound = square.bind_arguments("float32", n=4)
    assert [getattr(argument, "value", argument.name) for argument in bound] == ["c", "a", 4, 4, 4]
    for twice in ([inputs("c", "n")], [scalar("n", "int32"), "n"], ["c"]):
        with pytest.raises(ArgumentError, match="two arguments have the same name; given: "):
            Kernel("k", [outputs("c", "n"), *twice], 32, over=("n",), file="k.cu")


@pytest.mark.parametrize(
    ("type_text", "expected"),
    [
        ("u4", np.uint32(5)),
        ("u4", np.int32(-1)),
        ("u4", np.int32(-(2**31))),
        ("u4", np.uint32(2**32 - 1)),
        ("f4", np.float32(0.5)),
    ],
)
def test_number_has_type_of_the_parameter(type_text: str, expected: np.generic) -> None:
    """A number takes the entry point's type. Negative numbers fit unsigned types: nvcc declares `int` as .u32."""
    typed = ScalarArgument("n", expected.item()).to_numpy(np.dtype(type_text))
    assert (typed, typed.dtype) == (expected, expected.dtype)


@pytest.mark.parametrize(("value", "type_text"), [(-(2**31) - 1, "u4"), (2**32, "u4"), (1.5, "i4"), (1.5, "u4")])
def test_numbers_that_do_not_fit_are_refused(value: float, type_text: str) -> None:
    with pytest.raises(ArgumentError, match=r"n: .* does not fit "):
        ScalarArgument("n", value).to_numpy(np.dtype(type_text))


@pytest.mark.parametrize(
    ("arguments", "lengths", "expected"),
    [
        # Two null pointers, elements, item size, the array, lengths, strides in bytes, and a length.
        (
            numba_arguments(outputs("x", "h w 2", "float64"), "w"), {"h": 3, "w": 5},
            [0, 0, 3 * 5 * 2, 8, (3, 5, 2), 3, 5, 2, 5 * 2 * 8, 2 * 8, 8, 5],
        ),
        # The array, a length, and two null pointers.
        (triton_arguments(outputs("x", "n"), "n"), {"n": 7}, [(7,), 7, 0, 0]),
    ],
    ids=["Numba", "Triton"],
)  # fmt: skip
def test_arguments_of_numba_and_triton(arguments: list[Any], lengths: dict[str, int], expected: list[Any]) -> None:
    kernel = Kernel("k", arguments, 32, over=(max(lengths),), file="k.cu")
    bound = kernel.bind_arguments("int8", **lengths)
    values = [argument.value if isinstance(argument, ScalarArgument) else argument.shape for argument in bound]
    assert values == expected


def test_arguments_are_packed_as_the_entry_point_requires() -> None:
    """Each argument is aligned to its size; `x` stands for a byte of padding."""
    array = ArrayArgument("x", (3,), np.dtype("f4"), "in", "bits")
    kinds = (("i", 1), ("u", 8), ("i", 4), ("f", 8))
    layout = [ParameterLayout(size, size, np.dtype(f"{kind}{size}")) for kind, size in kinds]
    bound: list[Any] = [ScalarArgument("a", 1), array, ScalarArgument("n", 2), ScalarArgument("y", 0.5)]
    packed, places = pack_arguments(bound, layout)
    assert packed == struct.pack("<bxxxxxxxQixxxxd", 1, 0, 2, 0.5)
    assert places == (8,)


@pytest.mark.parametrize(
    ("target", "expected"), [("sm_90a", "sm_90a"), ("sm_90", "sm_90"), ("sm_80", "sm_90"), ("", "sm_90")]
)
def test_only_arch_specific_ptx_keeps_its_target(target: str, expected: str) -> None:
    """PTX for sm_90a, as Triton writes, is assembled for sm_90a. Other PTX is assembled for the given `arch`."""
    assert PtxModule(f".version 9.0\n.target {target}\n" if target else "", "k").target_arch("sm_90") == expected
