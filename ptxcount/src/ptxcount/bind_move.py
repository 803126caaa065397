"""``mov`` and ``cvt``: values from register to register, packed and converted (PTX ISA, ``mov``, ``cvt``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .chunk import Chunk
from .convert import ROUNDINGS, TO_INTEGER, convert
from .floating import positive
from .operands import Binder, Step, as_array, expect_count, split_name, step_of, unsupported
from .program import TYPES, Group, Instruction, Operand, Register, Type
from .small_float import PAIRS, decoded, encoded
from .values import Value, convert_sum

Array = npt.NDArray[Any]


def _bind_convert(instruction: Instruction) -> Step:
    """``cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a``; ``d`` and ``a`` may be in wider registers."""
    names, types = split_name(instruction)
    if names == ["pack", "sat"]:
        return _bind_pack_saturated(instruction, types)
    if names[1:] == ["tf32"] and names[0] in _TF32:
        return _bind_tf32(instruction, names[0])
    if PAIRS.keys() & {*names}:
        return _bind_small(instruction, names, types)
    if len(types) == 2 and types[0].name in _PACKED:
        return _bind_packed(instruction, names, types[1])
    if len(types) != 2 or not {*names} <= ROUNDINGS | {"ftz", "sat", "relu"} or any(t.kind in "bph" for t in types):
        raise unsupported(instruction)
    expect_count(instruction, 2)
    target, source = types
    _expect_half(instruction, names, target, source)
    chosen = [name for name in names if name in ROUNDINGS]
    to_integer = target.kind not in "fe" and source.kind in "fe"
    if len(chosen) > 1 or (to_integer and not (chosen and chosen[0].endswith("i"))):
        raise unsupported(instruction, "one rounding wanted")
    rounding, saturate, ftz = chosen[0] if chosen else "rn", "sat" in names, "ftz" in names
    to, from_ = instruction.operands
    relu = "relu" in names
    sums = not {"f", "e"} & {target.kind, source.kind} and not saturate and min(target.size, source.size) >= 4
    sums = sums and isinstance(to, Register) and to.type.size == target.size

    def converted(chunk: Chunk, value: Value) -> list[Value]:
        total = convert_sum(value, source, target) if sums else None
        if total is not None:
            return [total]
        return [convert(as_array(value, source), source, target, rounding, saturate=saturate, ftz=ftz, relu=relu)]

    return step_of(instruction, [(to, target)], [(from_, source)], converted, wider=True, sums=True)


#: What is added to the bits of a float before the lowest 13 are cut off.
_TF32: dict[str, Callable[[Array], Any]] = {
    "rna": lambda bits: 0x1000,
    "rn": lambda bits: 0xFFF + (bits >> 13 & 1),
    "rz": lambda bits: 0,
}
#: What becomes of no number, as on an H200.
_TF32_NAN: dict[str, Callable[[Array], Any]] = {
    "rna": lambda bits: bits,
    "rn": lambda bits: 0x7FFFFFFF,
    "rz": lambda bits: 0x7FFFFFFF,
}


def _bind_tf32(instruction: Instruction, rounding: str) -> Step:
    """``cvt.{rna,rn,rz}.tf32.f32 d, a``."""
    expect_count(instruction, 2)
    target, source = instruction.operands

    def rounded(chunk: Chunk, bits: Array) -> list[Array]:
        whole = np.where((bits & 0x7FFFFFFF) > 0x7F800000, _TF32_NAN[rounding](bits), bits + _TF32[rounding](bits))
        return [(whole & 0xFFFFE000).astype(np.uint32)]

    return step_of(instruction, [(target, TYPES["b32"])], [(source, TYPES["u32"])], rounded)


#: What two of 8 bits make of no number, as on an H200.
_HALF_NAN = 0x7FFF


def _bind_small(instruction: Instruction, names: list[str], types: list[Type]) -> Step:
    """``cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b``, the same of ``.f16x2 d, a``, and ``cvt.rn.f16x2.e4m3x2 d, a``."""
    kind = next(name for name in names if name in PAIRS)
    makes, relu = instruction.modifiers[-1] != kind, "relu" in names
    wanted = {"rn", kind, "satfinite"} if makes else {"rn", kind}
    if {*names} - {"relu"} != wanted or [each.name for each in types] not in (
        [["f32"], ["f16x2"]] if makes else [["f16x2"]]
    ):
        raise unsupported(instruction)
    expect_count(instruction, 3 if types[0].name == "f32" else 2)
    target, *sources = instruction.operands

    def to_small(chunk: Chunk, *given: Array) -> list[Array]:
        if len(given) == 1:
            halves = np.stack([given[0] & 0xFFFF, given[0] >> 16], axis=-1).astype(np.uint16).view(np.float16)
        else:
            halves = np.stack(np.broadcast_arrays(*given[::-1]), axis=-1)
        parts = encoded(PAIRS[kind], positive(halves) if relu else halves)
        return [parts[..., 0] | (parts[..., 1].astype(np.uint16) << np.uint16(8))]

    def from_small(chunk: Chunk, pair: Array) -> list[Array]:
        low, high = (decoded(PAIRS[kind], each).astype(np.float16) for each in (pair & 0xFF, pair >> 8))
        both = [(positive(each) if relu else each) for each in (low, high)]
        bits = [np.where(np.isnan(each), _HALF_NAN, each.view(np.uint16)).astype(np.uint32) for each in both]
        return [bits[0] | (bits[1] << np.uint32(16))]

    if makes:
        reads = [(each, TYPES["f32"] if len(sources) > 1 else TYPES["b32"]) for each in sources]
        return step_of(instruction, [(target, TYPES["b16"])], reads, to_small)
    return step_of(instruction, [(target, TYPES["b32"])], [(sources[0], TYPES["b16"])], from_small)


def _expect_half(instruction: Instruction, names: list[str], target: Type, source: Type) -> None:
    """``.relu`` goes with halves. What becomes a half of another type is rounded to nearest or towards zero."""
    if "relu" in names and not (source.name == "f32" and target.size == 2 and target.kind in "fe"):
        raise unsupported(instruction, ".relu goes with a half made of .f32")
    if "e" in (target.kind, source.kind):
        whole = source.kind in "su" and source.size <= 4
        narrows = target.size == 2 and (source.kind in "fe" or whole) and {"rn", "rz"} & {*names}
        exact = not names if target.kind == "f" else target.kind in "su" or {*names} & {*TO_INTEGER}
        if not (narrows or (exact and source.kind == "e")) or "sat" in names or {source.name, target.name} & {"bf16x2"}:
            raise unsupported(instruction)


#: Two halves in a word, by the type of one.
_PACKED = {"f16x2": TYPES["f16"], "bf16x2": TYPES["bf16"]}


def _bind_packed(instruction: Instruction, names: list[str], source: Type) -> Step:
    """``cvt.rn{.relu}.f16x2.f32 d, a, b``: ``a`` becomes the upper half of ``d``."""
    rounding = [name for name in names if name in ("rn", "rz")]
    if source.name != "f32" or len(rounding) != 1 or not {*names} <= {"rn", "rz", "relu"}:
        raise unsupported(instruction)
    expect_count(instruction, 3)
    half = _PACKED[instruction.modifiers[-2]]
    target, *sources = instruction.operands
    relu = "relu" in names

    def packed(chunk: Chunk, *floats: Array) -> list[Array]:
        upper, lower = (
            convert(each, source, half, rounding[0], saturate=False, ftz=False, relu=relu).view(np.uint16)
            for each in floats
        )
        return [lower.astype(np.uint32) | (upper.astype(np.uint32) << np.uint32(16))]

    return step_of(instruction, [(target, TYPES["b32"])], [(each, source) for each in sources], packed)


def _bind_move(instruction: Instruction) -> Step:
    """``mov.type d, a``, where either side may be a vector of equal parts that make up the other."""
    _, types = split_name(instruction)
    expect_count(instruction, 2)
    if len(types) != 1 or len(instruction.modifiers) != 1:
        raise unsupported(instruction)
    kind, (to, source) = types[0], instruction.operands
    if isinstance(to, Group):
        return _unpack(instruction, to, source, kind)
    if isinstance(source, Group):
        return _pack(instruction, to, source, kind)
    return step_of(instruction, [(to, kind)], [(source, kind)], lambda chunk, value: [value], sums=True)


def _part(instruction: Instruction, count: int, kind: Type) -> Type:
    part = TYPES.get(f"b{kind.bits // count}")
    if count not in (2, 4) or part is None or kind.kind in "pfh":
        raise unsupported(instruction, f"{count} parts of .{kind.name}")
    return part


def _pack(instruction: Instruction, to: Operand, group: Group, kind: Type) -> Step:
    part = _part(instruction, len(group.items), kind)

    def packed(chunk: Chunk, *pieces: Array) -> list[Array]:
        return [np.stack(np.broadcast_arrays(*pieces), axis=-1).view(kind.dtype)[..., 0]]

    return step_of(instruction, [(to, kind)], [(item, part) for item in group.items], packed)


def _unpack(instruction: Instruction, group: Group, source: Operand, kind: Type) -> Step:
    part = _part(instruction, len(group.items), kind)

    def unpacked(chunk: Chunk, whole: Array) -> list[Array]:
        pieces = np.ascontiguousarray(whole)[..., None].view(part.dtype)
        return [np.ascontiguousarray(pieces[..., place]) for place in range(len(group.items))]

    return step_of(instruction, [(item, part) for item in group.items], [(source, kind)], unpacked)


def _bind_pack_saturated(instruction: Instruction, types: list[Type]) -> Step:
    """``cvt.pack.sat.dtype.s32{.b32} d, a, b{, c}``: two numbers, and the lower bits of ``c`` above them."""
    width = {"16": 16, "u8": 8, "s8": 8}.get(types[0].name[-2:], 0) if types else 0
    if [each.name for each in types[1:]] != ["s32"] + ["b32"] * (width == 8) or not width:
        raise unsupported(instruction)
    expect_count(instruction, len(types) + 1)
    limits = np.iinfo(types[0].dtype)
    target, *sources = instruction.operands

    def packed(chunk: Chunk, *given: Array) -> list[Array]:
        upper, lower = (np.clip(each, limits.min, limits.max).astype(np.int64) & (2**width - 1) for each in given[:2])
        rest = given[2].astype(np.int64) << 2 * width if len(given) > 2 else 0
        return [(lower | upper << width | rest).astype(np.uint32)]

    kinds = (TYPES["s32"], TYPES["s32"], TYPES["u32"])
    return step_of(instruction, [(target, TYPES["b32"])], list(zip(sources, kinds, strict=False)), packed)


MOVE_BINDERS: dict[str, Binder] = {"cvt": _bind_convert, "mov": _bind_move}
