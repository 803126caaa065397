"""Kernels of NVIDIA Warp, with stand-ins for the objects of the package."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.source.adapters import adapt_kernel
from ptxcount.util.errors import LaunchError
from tests.ptxcount.languages import Arrays, Record, stand_in, write_copy


class Module:
    """Stand-in for a module of Warp, which can be a key, unlike a `Record`."""

    def __init__(self) -> None:
        self.options = {"block_dim": 256}

    def get_module_hash(self, block: int) -> bytes:
        return bytes(1)


def make_warp_kernel(monkeypatch: pytest.MonkeyPatch, ptx: str, **kinds: Any) -> Record:
    """Make a kernel with parameters of these types; each compilation appends its block size to ``compiled_blocks``."""

    def compile_module(module: Any, *, device: None, arch: int, module_dir: str, use_ptx: bool) -> list[Path]:
        kernel.compiled_blocks.append(module.options["block_dim"])
        assert (arch, use_ptx) == (90, True)
        path = Path(module_dir, "module.sm90.ptx")
        path.write_text(ptx.replace("copy", "copy_1f_cuda_kernel_forward") + "\0")
        path.with_name("module.meta").write_text('{"copy_1f_cuda_kernel_forward_smem_bytes": 512}')
        return [path]

    module = Module()
    stand_in(monkeypatch, warp=Record(compile_aot_module=compile_module))
    parameters = [Record(label=label, type=kind) for label, kind in kinds.items()]
    kernel = Record(key="copy", module=module, is_generic=False, adj=Record(args=parameters, kernel_dim=2))
    kernel.get_mangled_name, kernel.compiled_blocks = lambda: "copy_1f", []
    return kernel


#: Parameters of Warp: an array, and the bounds of a launch.
ARRAY, BOUNDS = ".param .align 8 .b8|[56]", ".param .align 8 .b8|[24]"


#: The bits of the half 1.5, as which a C type holds it.
HALF_BITS = int(np.float16(1.5).view(np.uint16))


class WarpArray(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("rest", ctypes.c_uint64 * 6))


class Inner(ctypes.Structure):
    _fields_ = (("scale", ctypes.c_uint16), ("offset", ctypes.c_float * 3), ("table", WarpArray))


class Outer(ctypes.Structure):
    _fields_ = (("n", ctypes.c_byte), ("bias", ctypes.c_double), ("inner", Inner), ("unset", WarpArray))


@pytest.fixture
def nested_struct(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return a kernel that copies the array in a nested struct, its argument ``outer``, and the member ``inner``."""
    content = Outer(n=-1, bias=0.5, inner=Inner(scale=HALF_BITS, offset=(1, 2, 3)))
    number, array = Record(type=Record()), Record(type=Record(ndim=1))
    of_inner = Record(vars={"scale": number, "offset": number, "table": array})
    of_outer = Record(vars={"n": number, "bias": number, "inner": Record(type=of_inner), "unset": array})
    interface = Record(__array_interface__=arrays.source.__array_interface__)
    numbers: dict[str, Any] = {"scale": 1.5, "offset": content.inner.offset}
    inner = Record(_cls=of_inner, table=interface, __ctype__=lambda: content.inner, **numbers)
    outer = Record(_cls=of_outer, n=-1, bias=0.5, inner=inner, unset=None, __ctype__=lambda: content)
    place = Outer.inner.offset + Inner.table.offset
    ptx = write_copy([BOUNDS, f".param .align 8 .b8|[{ctypes.sizeof(Outer)}]", ARRAY], (1, place), (2, 0))
    kernel = make_warp_kernel(monkeypatch, ptx, s=of_outer, o=Record(ndim=1))
    return Record(kernel=kernel, outer=outer, inner=inner)


def test_kernel_of_warp_reads_an_array_in_a_nested_struct(arrays: Arrays, nested_struct: Record) -> None:
    ptxcount.count(nested_struct.kernel, None, 8, 32, [nested_struct.outer, arrays.output])
    assert (arrays.output == arrays.source).all()


def test_struct_of_warp_has_the_numbers_of_its_c_type(arrays: Arrays, nested_struct: Record) -> None:
    arguments = [nested_struct.outer, arrays.output]
    struct: Any = adapt_kernel(nested_struct.kernel, None, arguments, "sm_90", 8, 32).arguments[1]
    assert (struct["n"], struct["bias"]) == (-1, 0.5)
    assert (struct["inner"]["scale"], struct["inner"]["offset"]) == (HALF_BITS, [1, 2, 3])


def test_other_argument_than_the_struct_of_warp_is_refused(arrays: Arrays, nested_struct: Record) -> None:
    for other in (3, nested_struct.inner):
        with pytest.raises(LaunchError, match=r"argument s has the type .*; pass an array or a NumPy scalar"):
            ptxcount.count(nested_struct.kernel, None, 8, 32, [other, arrays.output])


@pytest.fixture
def warp_copy(monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return a kernel that copies array x to array o."""
    ptx = write_copy([BOUNDS, ARRAY, ARRAY], source=(1, 0), output=(2, 0))
    return make_warp_kernel(monkeypatch, ptx, x=Record(ndim=1), o=Record(ndim=1))


def test_kernel_of_warp_gets_dim_and_arrays(arrays: Arrays, warp_copy: Record) -> None:
    counters = ptxcount.count(warp_copy, None, (4, 8), 32, [arrays.source, arrays.output])
    assert (arrays.output == arrays.source).all()
    assert counters.threads == 4 * 8
    adapted = adapt_kernel(warp_copy, None, [arrays.source, arrays.output], "sm_90", (100, 8), 32)
    bounds: Any = adapted.arguments[0]
    assert (bounds["shape"], bounds["size"], bounds["coord_mult"]) == ([100, 8], 100 * 8, 1)
    assert adapted.grid == 100 * 8 / 32


def test_last_axis_of_warp_tiles_is_the_block(arrays: Arrays, warp_copy: Record) -> None:
    vector = (ctypes.c_float * 2)(1, 2)
    adapted = adapt_kernel(warp_copy, None, [vector, arrays.output], "sm_90", (4, 8, 32), 32)
    bounds: Any = adapted.arguments[0]
    assert (bounds["shape"], bounds["size"], bounds["coord_mult"]) == ([4, 8], 4 * 8 * 32, 32)
    assert (adapted.grid, adapted.dynamic_shared, adapted.arguments[1]) == (4 * 8, 512, np.void(bytes(vector)))


def test_warp_compiles_once_for_a_block_size(arrays: Arrays, warp_copy: Record) -> None:
    both = [arrays.source, arrays.output]
    assert adapt_kernel(warp_copy, None, both, "sm_90", (4, 8), 32).grid == 1
    assert adapt_kernel(warp_copy, "copy", both, "sm_90", np.int64(100), np.int32(32)).grid == 4
    assert warp_copy.compiled_blocks == [32]
    assert adapt_kernel(warp_copy, "copy", both, "sm_90", 512).grid == 2  # the module's block size is 256
    assert (warp_copy.compiled_blocks, warp_copy.module.options) == ([32, 256], {"block_dim": 256})


def test_wrong_launch_of_warp_is_refused(arrays: Arrays, warp_copy: Record) -> None:
    both = [arrays.source, arrays.output]
    refusals: list[tuple[tuple[Any, ...], str]] = [
        ((None, 2.5, 32, both), r"grid is 2.5; for the Warp kernel copy, give one or more integers"),
        (("other", 8, 32, both), "entry is 'other', but this is the Warp kernel copy; omit entry"),
        ((None, 8, 32, both[:1]), r"the Warp kernel copy takes 2 arguments \(x, o\), not 1"),
    ]
    for launch, message in refusals:
        with pytest.raises(LaunchError, match=message):
            ptxcount.count(warp_copy, *launch)
    warp_copy.is_generic = True
    with pytest.raises(LaunchError, match="the Warp kernel copy is generic; pass one of its overloads"):
        ptxcount.count(warp_copy, None, 8, 32, both)


#: Type of a parameter of Warp: vectors have two elements of float32.
VECTOR = Record(__name__="vec2f", _wp_scalar_type_=np.float32, _shape_=(2,))
#: Type of a parameter, wrong values, and the message.
WRONG_VALUES: list[tuple[Any, list[Any], str]] = [
    (Record(ndim=1, dtype=float), [np.zeros(8), np.zeros(8, np.int32), np.zeros((2, 4), np.float32)],
     r"argument x is an array of .*; it must have float32 and 1 dimension$"),
    (Record(ndim=1, dtype=VECTOR), [np.zeros(8, np.float32), np.zeros((4, 2))], "float32 and 2 dimensions$"),
    (VECTOR, [np.zeros(2, np.int32)], "it must have float32 and 1 dimension$"),
    (int, [1 << 31, 6.5, float("nan"), np.int64(1 << 31), np.float32(6.5)],
     "argument x is .*; it must be a whole number that int32 can hold$"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "message"), WRONG_VALUES)
def test_other_types_than_those_of_warp_are_refused(
    kind: Any, values: list[Any], message: str, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = make_warp_kernel(monkeypatch, write_copy([BOUNDS, ARRAY, ARRAY]), x=kind, o=Record(ndim=1))
    for value in values:
        with pytest.raises(LaunchError, match=message):
            adapt_kernel(kernel, None, [value, arrays.output], "sm_90", 8, 32)


@pytest.mark.parametrize("value", [7, 7.0, np.int64(7), np.float32(7), np.uint8(7)])
def test_number_becomes_the_type_of_warp(value: Any, arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_warp_kernel(monkeypatch, write_copy([BOUNDS, ARRAY, ARRAY]), x=int, o=Record(ndim=1))
    number: Any = adapt_kernel(kernel, None, [value, arrays.output], "sm_90", 8, 32).arguments[1]
    assert (number, number.dtype) == (7, np.int32)


def test_array_of_warp_may_be_none(arrays: Arrays, warp_copy: Record) -> None:
    assert adapt_kernel(warp_copy, None, [None, arrays.output], "sm_90", 8, 32).arguments[1] == np.void(bytes(56))
