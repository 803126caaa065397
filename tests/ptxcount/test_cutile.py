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
    """The host function writes a map of the first array: one axis of float32 (0x382), length and box of 7 + 1."""
    ptx = write_copy([*TWO_ARRAYS, TENSOR_MAP], output=(3, 0))
    tile = Tile(ptx)
    stand_in(monkeypatch, cuda__tile=tile, cuda__tile__compilation=tile)
    with pytest.raises(LaunchError, match=r"takes 3 arguments and 1 tensor map, but .* did not run; pass each map"):
        arrays.count(KERNEL, 64)
    arrays.count(KERNEL, 64, ptxcount.TensorMap(arrays.source, (8,)))
    tile.cubin = make_cubin(ptx, make_host_section({0: None, 8: 0x382, 32: 7, 48: 7 << 56}))
    arrays.count(KERNEL, 64)


LINE = np.zeros(257, np.float32)


@pytest.mark.parametrize(("array", "base", "aliases", "strides", "lengths"), [
    (LINE[:256], 16, False, ([1], [1]), ([None], [16])),
    (LINE[1:], 1, False, ([1], [1]), ([None], [16])),
    (LINE[4:], 16, False, ([1], [1]), ([None], [1])),
    (LINE[15::-1], 1, True, ([None], [1]), ([None], [16])),
    (np.ndarray((2, 4), np.float32, bytearray(40), strides=(20, 4))[1], 16, False, ([1], [1]), ([None], [1])),
    (np.zeros((16, 20), np.float32), 16, False, ([None, 1], [4, 1]), ([None, None], [16, 1])),
    (np.zeros((20, 24), np.float16).T, 16, False, ([1, None], [1, 8]), ([None, None], [1, 1])),
    (np.broadcast_to(LINE[:32], (16, 32)), 16, True, ([None, 1], [4, 1]), ([None, None], [16, 16])),
    (sliding_window_view(LINE, 16), 16, True, ([1, 1], [1, 1]), ([None, None], [1, 16])),
    (LINE[:32].reshape(1, 32), 16, False, ([None, 1], [4, 1]), ([1, None], [1, 16])),
    (np.zeros((2, 2, 2, 2, 2, 16), np.float32), 16, False, (None, None), (None, None)),
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
#: Words as tileiras writes them: None for the address of the array.
ROWS = {0: None, 8: 0x18 << 32 | 0x40392, 32: 0x3F << 32 | 0x4F, 48: 0x0F << 56, 56: 0x0F}


@pytest.mark.parametrize(("array", "words", "box", "swizzle"), [
    (FLOATS[:, :80], ROWS, (16, 16), 0),
    (FLOATS[:, :80].T, ROWS, (16, 16), 0),  # x is the axis whose elements lie side by side
    (FLOATS[:, :80], ROWS | {8: 0x18 << 32 | 0x46392, 48: 0x1F << 56, 56: 0x3F}, (64, 32), 128),
    (np.zeros((6, 20, 24, 64), np.float16), {
        0: None, 8: 0x8 << 32 | 0x240332, 16: 0xF00 << 32 | 0xC0, 32: 0x17 << 32 | 0x3F, 40: 0x5 << 32 | 0x13,
        48: 0x1F << 56, 56: 0x10303}, (2, 4, 4, 32), 0),
])  # fmt: skip
def test_words_give_a_map(array: Any, words: dict[int, int | None], box: tuple[int, ...], swizzle: int) -> None:
    cubin = make_cubin("", make_host_section(words))
    (tensor_map,) = make_tensor_maps(cubin, [array, *map(np.int32, array.shape)], 1)
    assert (tensor_map.box, tensor_map.swizzle) == (box, swizzle)
    assert [*tensor_map.array.strides] == sorted(array.strides, reverse=True)
    assert np.shares_memory(tensor_map.array, array)


@pytest.mark.parametrize("words", [
    {8: 0x18 << 32 | 0x48392}, {8: 0x18 << 32 | 0x40393}, {8: 0x19 << 32 | 0x40392}, {32: 0x3E << 32 | 0x4F},
    {48: 0x0F << 56 | 1 << 32},
])  # fmt: skip
def test_unknown_maps_are_refused(words: dict[int, int | None]) -> None:
    cubin = make_cubin("", make_host_section(ROWS | words))
    message = r"^cuTile made a tensor map of .* of an array of \(64, 80\); ptxcount does not know"
    with pytest.raises(LaunchError, match=message):
        make_tensor_maps(cubin, [FLOATS[:, :80], np.int32(1)], 1)


@pytest.mark.parametrize(("options", "count"), [({}, 1), ({"machine": 183}, 0), ({"link": 4}, 0)])
def test_only_usable_host_functions_are_called(options: dict[str, int], count: int) -> None:
    maps = make_tensor_maps(make_cubin("", make_host_section(ROWS, **options)), [FLOATS[:, :80]], 1)
    assert len(maps) == count
