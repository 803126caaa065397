"""Kernels of Triton, by stand-ins: functions that are compiled as a launch compiles them, and bare PTX."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.kernel_counts import count_compiled
from ptxcount.source.adapters import adapt_kernel
from ptxcount.util.errors import LaunchError
from tests.ptxcount.languages import POINTER, Arrays, Record, stand_in, write_copy


@pytest.mark.parametrize(("parameters", "more", "message"), [
    ([POINTER] * (2 + 2), [], ""), ([POINTER] * (2 + 1), [], ""), ([POINTER] * (2 + 3), [], "takes 5 arguments, not 2"),
    ([POINTER] * 2, [None], "takes 2 arguments, not 3"),
    ([".param .u64 .ptr .align 1"] * 3, [], "takes 3 arguments, not 2"),  # nvcc declares none as one to global memory
])  # fmt: skip
def test_only_scratch_pointers_are_added(parameters: list[str], more: list[None], message: str, arrays: Arrays) -> None:
    """A kernel gets two arrays; at most two scratch pointers follow."""
    with pytest.raises(LaunchError, match=message) if message else nullcontext():
        arrays.count(write_copy(parameters), *more)


def test_compiled_kernel_gets_scratch_pointers(arrays: Arrays) -> None:
    count_compiled(write_copy([POINTER] * 4), "copy", 1, 32, [arrays.source, arrays.output])
    assert (arrays.output == arrays.source).all()


def _parameter(name: str, **options: Any) -> Record:
    defaults = {"is_constexpr": False, "do_not_specialize": False, "do_not_specialize_on_alignment": False}
    return Record(**{"name": name, "has_default": False, "default": None, "annotation_type": "", **defaults, **options})


#: Value and options of a parameter, its type, True if it is a constant, and True if 16 divides it.
SPECIALIZED: list[tuple[Any, dict[str, Any], str, bool, bool]] = [
    (np.zeros(4, np.float16), {}, "*fp16", False, True),
    (np.zeros(40, np.float32)[1:], {}, "*fp32", False, False),
    (np.zeros(40, np.float32)[4:], {}, "*fp32", False, True),
    (np.ndarray((2, 4), np.float32, bytearray(40), strides=(20, 4))[1], {}, "*fp32", False, True),  # placed alone
    (np.zeros(4, np.bool_), {}, "*i1", False, True), (np.zeros(4, np.uint16), {}, "*u16", False, True),
    (np.zeros(4, np.uint8), {"do_not_specialize_on_alignment": True}, "*u8", False, False),
    (1000, {}, "i32", False, False), (1024, {}, "i32", False, True), (1 << 40, {}, "i64", False, True),
    (1024, {"do_not_specialize": True}, "i32", False, False), (1, {"do_not_specialize": True}, "i32", False, False),
    (1, {}, "constexpr", True, False), (None, {}, "constexpr", True, False), (np.int64(7), {}, "i64", False, False),
    (0.5, {}, "fp32", False, False), (True, {}, "u1", False, False),
    (64, {"is_constexpr": True}, "constexpr", True, False), (3, {"annotation_type": "i64"}, "i64", False, False),
]  # fmt: skip


class Triton:
    """Stand-in for the compiler of Triton, which keeps its inputs."""

    def __init__(self, ptx: str) -> None:
        self.ptx = ptx
        self.maps: list[dict[str, Any]] = []
        self.scratch: dict[str, int] = {}

    def modules(self) -> dict[str, Any]:
        target = Record(GPUTarget=lambda *words: words)
        return {"triton": self, "triton__compiler": Record(ASTSource=Record), "triton__backends__compiler": target}

    def compile(self, source: Any, target: Any, options: Any) -> Record:
        self.source, self.target, self.options = source, target, options
        ctas = options.get("num_ctas", 1)
        warps = options.get("num_warps", 4)
        metadata = Record(
            name="copy", num_warps=warps, num_ctas=ctas, shared=0, tensordesc_meta=self.maps, **self.scratch
        )
        return Record(asm={"ptx": self.ptx}, metadata=metadata)


def _make_jit_function(*parameters: Record) -> Record:
    return Record(params=[*parameters], arg_names=[p.name for p in parameters], fn=len, run=len)


@pytest.mark.parametrize(("value", "options", "kind", "constant", "divisible"), SPECIALIZED)
def test_functions_are_specialized_as_by_triton(
    value: Any, options: dict[str, Any], kind: str, constant: bool, divisible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = Triton(write_copy([POINTER] * (3 - constant)))
    stand_in(monkeypatch, **triton.modules())
    adapted = adapt_kernel(_make_jit_function(_parameter("x", **options)), None, [value], "sm_120")
    assert triton.source.signature == {"x": kind}
    assert triton.source.constexprs == ({(0,): value} if constant else {})
    assert triton.source.attrs == ({(0,): [["tt.divisibility", 16]]} if divisible else {})
    assert triton.target == ("cuda", 120, 32)
    assert (len(adapted.arguments), len(adapted.scratch_sizes)) == (1 - constant, 2)


@pytest.mark.parametrize(("grid", "blocks"), [(3, 3 * 2), ((2, 3), 2 * 3 * 2)])
def test_program_has_num_ctas_blocks(grid: Any, blocks: int, arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton(write_copy([POINTER] * 2))
    stand_in(monkeypatch, **triton.modules())
    keywords = {"x": arrays.source, "o": arrays.output, "num_ctas": 2, "num_warps": 1}
    counters = ptxcount.count(_make_jit_function(_parameter("x"), _parameter("o")), None, grid, None, keywords)
    assert counters.threads == 32 * blocks


def test_each_block_has_scratch_memory(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block n of 2 * 3 blocks stores 32 bytes from byte 32 * n of the scratch memory on."""
    address = "mov.u32 %r2, %ctaid.x; mad.wide.u32 %rd2, %r2, 32, %rd2; mad.wide.u32 %rd2, %r1"
    triton = Triton(write_copy([POINTER] * 3, output=(1, 0)).replace("mad.wide.u32 %rd2, %r1", address))
    stand_in(monkeypatch, **triton.modules())
    keywords = {"x": arrays.source, "num_ctas": 2, "num_warps": 1}
    for size in (32, 31):
        triton.scratch = {"global_scratch_size": size}
        with nullcontext() if size == 32 else pytest.raises(ptxcount.OutOfBoundsError, match="argument 1 of 186 bytes"):
            ptxcount.count(_make_jit_function(_parameter("x")), None, 3, None, keywords)


def test_triton_function_takes_names_and_heuristics(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton(write_copy([POINTER] * 4))
    stand_in(monkeypatch, **triton.modules())
    parameters = [_parameter("x"), _parameter("o"), _parameter("SIZE", is_constexpr=True), _parameter("n")]
    function = _make_jit_function(*parameters)
    values = {"SIZE": lambda keywords: 4 * keywords["n"]}
    heuristics = Record(arg_names=function.arg_names, run=len, fn=function, values=values)
    keywords = {"x": arrays.source, "o": arrays.output, "n": 1, "num_warps": 1}
    ptxcount.count(heuristics, None, 1, None, keywords)
    assert (arrays.output == arrays.source).all()
    assert triton.source.constexprs == {(2,): 4, (3,): 1}  # Triton also makes an argument of 1 a constant
    assert triton.options == {"num_warps": 1}


@pytest.mark.parametrize(("keywords", "message"), [
    ({"x": np.zeros(8, np.float32)}, "Triton's kernel also needs SIZE; pass all arguments, also those that"),
    ({"x": set(), "SIZE": 4},
     "argument x of Triton's kernel has the type set; pass an array, a number, a tensor descriptor or None"),
])  # fmt: skip
def test_wrong_arguments_are_refused(keywords: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, **Triton(write_copy([POINTER] * 3)).modules())
    function = _make_jit_function(_parameter("x"), _parameter("SIZE", is_constexpr=True))
    with pytest.raises(LaunchError, match=message):
        ptxcount.count(function, None, 1, None, keywords)


#: A descriptor of 8 rows of 60 numbers, in an array with rows of 64; and the map that Triton makes of it.
ROWS = np.zeros((8, 64), np.float32)
DESCRIPTOR: dict[str, Any] = {
    "base": ROWS, "shape": [8, 60], "strides": [64, 1], "block_shape": [4, 32], "padding": "zero"
}  # fmt: skip
MAP: dict[str, Any] = {"block_size": [4, 16], "swizzle": 2, "fp4_padded": False}


def _adapt_descriptor(monkeypatch: pytest.MonkeyPatch, arch: str, triton: Triton, **changes: Any) -> Any:
    """Return the arguments of a kernel that takes `DESCRIPTOR` with changes."""
    stand_in(monkeypatch, **triton.modules())
    descriptor = Record(**DESCRIPTOR | changes)
    return adapt_kernel(_make_jit_function(_parameter("x")), None, [descriptor], arch).arguments


def test_function_of_gluon_has_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton(write_copy([POINTER] * 2))
    gluon = Record(GluonASTSource=lambda **inputs: Record(language="gluon", **inputs))
    stand_in(monkeypatch, **triton.modules(), triton__experimental__gluon___runtime=gluon)
    function = _make_jit_function(_parameter("x"))
    function.is_gluon = lambda: True
    adapt_kernel(function, None, [Record(**DESCRIPTOR, layout=[128])], "sm_80")
    assert (triton.source.language, triton.source.signature) == ("gluon", {"x": "tensordesc<fp32[4, 32],[128]>"})


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_tensor_descriptor_is_a_pointer_and_numbers(padding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton(write_copy([POINTER] * 2))
    array, *numbers = _adapt_descriptor(monkeypatch, "sm_80", triton, padding=padding)
    assert (triton.source.signature, triton.source.attrs) == ({"x": "tensordesc<fp32[4, 32]>"}, {})
    assert (array.shape, array.strides, array.base is ROWS) == ((8, 60), (256, 4), True)
    assert numbers == [8, 60, 64, 1, padding == "nan", False, 8, 60, 64, 1]  # shape, strides, flags, shape, strides
    assert [n.itemsize for n in numbers] == [8, 8, 8, 8, 1, 1, 4, 4, 8, 8]


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_tensor_descriptor_is_a_map_on_hopper(padding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton(write_copy([POINTER] * 2))
    triton.maps = [MAP]
    tensor_map, *numbers = _adapt_descriptor(monkeypatch, "sm_90", triton, padding=padding)
    assert (tensor_map.array.shape, tensor_map.box, tensor_map.swizzle) == ((8, 60), (4, 16), 64)
    assert tensor_map.fills_nan is (padding == "nan")
    assert [(n, n.itemsize) for n in numbers] == [(8, 4), (60, 4), (64, 8), (1, 8)]  # shape and strides


@pytest.mark.parametrize(("changes", "map_changes", "message"), [
    ({"round_f32_to_tf32": True}, {}, "a tensor descriptor of Triton that rounds to TF32 is not supported; pass"),
    ({"shape": [9, 60]}, {}, r"with shape \[9, 60\] and strides \[64, 1\] exceeds its array of 512 elements"),
    ({"base": ROWS[:, ::2]}, {}, "the base of a tensor descriptor is no C-contiguous array"),
    ({}, {"fp4_padded": True}, "of Triton that pads packed FP4 is not supported; pass"),
    ({}, {"is_im2col": True}, "of Triton that is in im2col mode is not supported; pass"),
])  # fmt: skip
def test_unsupported_descriptors_are_refused(
    changes: dict[str, Any], map_changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = Triton(write_copy([POINTER] * 2))
    triton.maps = [MAP | map_changes]
    with pytest.raises(LaunchError, match=message):
        _adapt_descriptor(monkeypatch, "sm_90", triton, **changes)
