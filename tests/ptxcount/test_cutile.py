"""Kernels of cuTile, by stand-ins, and their tensor maps, with the fields that tileiras 13.4 writes."""

import struct
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import ptxcount
from ptxcount.source.cutile_maps import make_tensor_maps
from ptxcount.source.tile_kernels import adapt_cutile
from ptxcount.util.errors import LaunchError
from tests.ptxcount.languages import Arrays, Record, make_cubin, make_elf, stand_in, write_copy

pytest.importorskip("elftools")
FUNCTION = "__CUDA_TILEIR_FUNC_ON_ARGUMENTS_CHANGE_0"


def make_host_section(words: dict[int, int | None], *, machine: int = 62, link: int = 0) -> dict[str, Any]:
    """Make a section with a host function that writes words of a tensor map, 48 bytes behind the first parameter.

    A word that is None stands for the first parameter. The instruction before the function would stop a process.
    """
    code = b"\x0f\x0b"  # ud2
    for place, word in words.items():  # mov rax, [rcx]; or mov rax, word
        code += b"\x48\x8b\x01" if word is None else b"\x48\xb8" + word.to_bytes(8, "little")
        code += b"\x48\x89\x81" + (48 + place).to_bytes(4, "little")  # mov [rcx + 48 + place], rax
    code += b"\x31\xc0\xc3"  # xor eax, eax; ret
    sections = {
        FUNCTION: (3, b""),  # its name is the first of all names
        ".ltext": (1, code),
        ".rela.ltext": (4, struct.pack("<QQq", link, 0, 0)),
        ".symtab": (2, bytes(24) + struct.pack("<IBBHQQ", 1, 2, 0, 2, 2, len(code) - 2)),
    }
    return {".nv.host": (1, make_elf(machine, sections))}


class Tile:
    """Stand-in for the compiler of cuTile; constraints are records."""

    bool_, int32, float16, float32 = "bool_", "int32", "float16", "float32"
    CallingConvention = Record(cutile_python_v1=lambda: "v1", cutile_python_v2=lambda: "v2")
    ArrayConstraint = staticmethod(lambda dtype, ndim, **options: Record(dtype=dtype, ndim=ndim, **options))
    ScalarConstraint = ConstantConstraint = staticmethod(lambda value: value)
    KernelSignature = staticmethod(lambda *signature: signature)

    def __init__(self, ptx: str) -> None:
        self.cubin = make_cubin(ptx)

    def export_kernel(self, kernel: Any, signatures: Any, file: Any, *, gpu_code: str, output_format: str) -> None:
        ((self.constraints, self.convention),) = signatures
        file.write(self.cubin)


#: An array is a pointer, a length and a step.
TWO_ARRAYS = [".param .u64", ".param .u32", ".param .u32"] * 2
TENSOR_MAP = ".hidden .param .align 64 .b8|[128]"
#: A kernel of two arrays and a constant.
KERNEL = Record(
    _annotated_function=Record(parameter_annotations=[Record(constant=place == 2) for place in range(3)]),
    _compiler_options=None,
)


def test_cutile_kernel_gets_arrays(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = Tile(write_copy(TWO_ARRAYS, output=(3, 0)))
    stand_in(monkeypatch, cuda__tile=tile, cuda__tile__compilation=tile)
    arrays.count(KERNEL, 64, arch="sm_80")
    array, _, constant = tile.constraints
    assert (array.dtype, array.stride_constant, array.shape_divisible_by, constant) == ("float32", [1], [1], 64)
    with pytest.raises(LaunchError, match="takes 3 arguments and 0 tensor maps, not 4 arguments"):
        arrays.count(KERNEL, 64, 1, arch="sm_80")


def test_cutile_kernel_gets_maps(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host function writes a map of the first array: one axis of float32 (0x382), length and box of 8, minus 1."""
    ptx = write_copy([*TWO_ARRAYS, TENSOR_MAP], output=(3, 0))
    tile = Tile(ptx)
    stand_in(monkeypatch, cuda__tile=tile, cuda__tile__compilation=tile)
    with pytest.raises(LaunchError, match=r"takes 3 arguments and 1 tensor map, but .* did not run; pass each map"):
        arrays.count(KERNEL, 64)
    arrays.count(KERNEL, 64, ptxcount.TensorMap(arrays.source, (8,)))
    tile.cubin = make_cubin(ptx, make_host_section({0: None, 8: 0x382, 32: 8 - 1, 48: (8 - 1) << 56}))
    arrays.count(KERNEL, 64)


LINE = np.zeros(257, np.float32)


#: Array; divisor of its address in memory; True if elements may overlap; strides that are the constant 1, and divisors
#: of strides: 16 bytes, else 1 element; lengths that are the constant 1, and divisors of lengths: 16, else 1.
@pytest.mark.parametrize(("array", "base", "aliases", "strides", "lengths"), [
    (LINE[:256], 16, False, ([1], [1]), ([None], [16])),
    (LINE[1:], 1, False, ([1], [1]), ([None], [16])),  # 256 elements, 4 bytes after the first
    (LINE[4:], 16, False, ([1], [1]), ([None], [1])),  # 253 elements
    (LINE[15::-1], 1, True, ([None], [1]), ([None], [16])),  # a negative stride
    # the base of this row is not contiguous: memory holds only the row
    (np.ndarray((2, 4), np.float32, bytearray(40), strides=(20, 4))[1], 16, False, ([1], [1]), ([None], [1])),
    (np.zeros((16, 20), np.float32), 16, False, ([None, 1], [4, 1]), ([None, None], [16, 1])),
    (np.zeros((20, 24), np.float16).T, 16, False, ([1, None], [1, 8]), ([None, None], [1, 1])),
    (np.broadcast_to(LINE[:32], (16, 32)), 16, True, ([None, 1], [4, 1]), ([None, None], [16, 16])),
    (sliding_window_view(LINE, 16), 16, True, ([1, 1], [1, 1]), ([None, None], [1, 16])),
    (LINE[:32].reshape(1, 32), 16, False, ([None, 1], [4, 1]), ([1, None], [1, 16])),  # a length of 1 is constant
    (np.zeros((2, 2, 2, 2, 2, 16), np.float32), 16, False, (None, None), (None, None)),  # too many axes
])  # fmt: skip
def test_arrays_have_the_constraints_of_a_launch(
    array: Any, base: int, aliases: bool, strides: Any, lengths: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected values are those of the launch of cuTile 1.7.0."""
    tile = Tile(write_copy([]))
    stand_in(monkeypatch, cuda__tile=tile, cuda__tile__compilation=tile)
    kernel = Record(_annotated_function=Record(parameter_annotations=[None]))
    adapt_cutile(kernel, None, [array], "sm_80")
    (constraint,) = tile.constraints
    options = ["stride_constant", "stride_divisible_by", "shape_constant", "shape_divisible_by"]
    assert (constraint.base_addr_divisible_by, constraint.may_alias_internally) == (base, aliases)
    assert [getattr(constraint, option, None) for option in options] == [*strides, *lengths]
    assert tile.convention == ("v2" if 1 in array.shape else "v1")  # only v2 has constant lengths


def test_types_are_those_of_cutile(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = Tile(write_copy([]))
    stand_in(monkeypatch, cuda__tile=tile, cuda__tile__compilation=tile)
    kernel = Record(_annotated_function=Record(parameter_annotations=[None] * 4))
    adapt_cutile(kernel, None, [np.zeros(8, np.bool_), True, 1, 0.5], "sm_80")
    array, *scalars = tile.constraints
    assert [array.dtype, *scalars] == ["bool_", "bool_", "int32", "float32"]
    with pytest.raises(LaunchError, match="cuTile has no type for NumPy's complex64; pass arguments of another dtype"):
        adapt_cutile(kernel, None, [np.zeros(8, np.complex64), True, 1, 0.5], "sm_80")


FLOATS = np.zeros((64, 96), np.float32)
#: Version 2 of a map of two axes of float32. Bits 13 and 14 are the swizzle.
FLAGS = 0x40392
#: Words by place as tileiras writes them: None for the address of the array; flags and pitches in units of 16 bytes;
#: lengths minus 1; from byte 55 on, lengths of the box minus 1. The first axis is x.
ROWS = {
    0: None, 8: (96 * 4 // 16) << 32 | FLAGS, 32: (64 - 1) << 32 | (80 - 1), 48: (16 - 1) << 56, 56: 16 - 1,
}  # fmt: skip


@pytest.mark.parametrize(("array", "words", "box", "swizzle"), [
    (FLOATS[:, :80], ROWS, (16, 16), 0),
    (FLOATS[:, :80].T, ROWS, (16, 16), 0),  # x is the axis whose elements lie side by side
    (FLOATS[:, :80], ROWS | {8: (96 * 4 // 16) << 32 | FLAGS | 3 << 13, 48: (32 - 1) << 56, 56: 64 - 1}, (64, 32), 128),
    (np.zeros((6, 20, 24, 64), np.float16), {
        0: None, 8: (64 * 2 // 16) << 32 | 0x240332, 16: (20 * 24 * 64 * 2 // 16) << 32 | (24 * 64 * 2 // 16),
        32: (24 - 1) << 32 | (64 - 1), 40: (6 - 1) << 32 | (20 - 1),
        48: (32 - 1) << 56, 56: (2 - 1) << 16 | (4 - 1) << 8 | (4 - 1)}, (2, 4, 4, 32), 0),
])  # fmt: skip
def test_words_give_a_map(array: Any, words: dict[int, int | None], box: tuple[int, ...], swizzle: int) -> None:
    cubin = make_cubin("", make_host_section(words))
    (tensor_map,) = make_tensor_maps(cubin, [array, *map(np.int32, array.shape)], 1)
    assert (tensor_map.box, tensor_map.swizzle) == (box, swizzle)
    assert [*tensor_map.array.strides] == sorted(array.strides, reverse=True)
    assert np.shares_memory(tensor_map.array, array)


@pytest.mark.parametrize("words", [
    {8: (96 * 4 // 16) << 32 | FLAGS | 1 << 15}, {8: (96 * 4 // 16) << 32 | FLAGS + 1},  # an unknown flag, version 3
    {8: (100 * 4 // 16) << 32 | FLAGS}, {32: (63 - 1) << 32 | (80 - 1)},  # another pitch, another length
    {48: (16 - 1) << 56 | 1 << 32},  # a step
])  # fmt: skip
def test_unknown_maps_are_refused(words: dict[int, int | None]) -> None:
    cubin = make_cubin("", make_host_section(ROWS | words))
    message = r"^cuTile made a tensor map of .* of an array of \(64, 80\); ptxcount does not know"
    with pytest.raises(LaunchError, match=message):
        make_tensor_maps(cubin, [FLOATS[:, :80], np.int32(1)], 1)


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"machine": 183}, 0), ({"link": 4}, 0)])
def test_only_usable_host_functions_are_called(options: dict[str, int], count: int) -> None:
    """Machine 183 is AArch64; a relocation at byte 4 of the code is in the function, which begins at byte 2."""
    maps = make_tensor_maps(make_cubin("", make_host_section(ROWS, **options)), [FLOATS[:, :80]], 1)
    assert len(maps) == count
