"""``mov``, ``cvt`` and ``cvta``: from register to register, packed, converted, as addresses of another space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value, convert_sum
from ..lanes.warps import Array
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Group, Instruction, Register, Type
from .arithmetic.convert import ROUNDINGS, TO_INTEGER, convert
from .arithmetic.floating import positive
from .arithmetic.small_float import PAIRS, decoded, encoded
from .operands import as_array, expect_count, plus, split_name, unsupported
from .registry import Step, binds, op, step_of
from .spaces import SPACES, WINDOW_BITS, WINDOWS, window

#: What is added to the bits of a float before the lowest 13 are cut off.
_TF32: dict[str, Callable[[Array], Any]] = {
    "rna": lambda bits: 0x1000,
    "rn": lambda bits: 0xFFF + (bits >> 13 & 1),
    "rz": lambda bits: 0,
}
#: What two of 8 bits make of no number, as on an H200.
_HALF_NAN = 0x7FFF


@op("cvt.(rna|rn|rz).tf32.f32", "b32 = u32")
def _tf32(rounding: str, chunk: Chunk, bits: Array) -> list[Array]:
    """What becomes of no number is as on an H200."""
    unknown = bits if rounding == "rna" else 0x7FFFFFFF
    whole = np.where((bits & 0x7FFFFFFF) > 0x7F800000, unknown, bits + _TF32[rounding](bits))
    return [(whole & 0xFFFFE000).astype(np.uint32)]


@op("cvt.rn.satfinite(.relu)?.(e4m3x2|e5m2x2).f32", "b16 = f32 f32")
@op("cvt.rn.satfinite(.relu)?.(e4m3x2|e5m2x2).f16x2", "b16 = b32")
def _to_small(relu: str | None, kind: str, chunk: Chunk, *given: Array) -> list[Array]:
    if len(given) == 1:
        halves = np.stack([given[0] & 0xFFFF, given[0] >> 16], axis=-1).astype(np.uint16).view(np.float16)
    else:
        halves = np.stack(np.broadcast_arrays(*given[::-1]), axis=-1)
    parts = encoded(PAIRS[kind], positive(halves) if relu else halves)
    return [parts[..., 0] | (parts[..., 1].astype(np.uint16) << np.uint16(8))]


@op("cvt.rn(.relu)?.f16x2.(e4m3x2|e5m2x2)", "b32 = b16")
def _from_small(relu: str | None, kind: str, chunk: Chunk, pair: Array) -> list[Array]:
    low, high = (decoded(PAIRS[kind], each).astype(np.float16) for each in (pair & 0xFF, pair >> 8))
    both = [(positive(each) if relu else each) for each in (low, high)]
    bits = [np.where(np.isnan(each), _HALF_NAN, each.view(np.uint16)).astype(np.uint32) for each in both]
    return [bits[0] | (bits[1] << np.uint32(16))]


@op("cvt.(rn|rz)(.relu)?.(f16|bf16)x2.f32", "b32 = f32 f32")
def _packed(rounding: str, relu: str | None, half: str, chunk: Chunk, *floats: Array) -> list[Array]:
    """The first operand becomes the upper half."""
    upper, lower = (
        convert(each, TYPES["f32"], TYPES[half], rounding, saturate=False, ftz=False, relu=bool(relu)).view(np.uint16)
        for each in floats
    )
    return [lower.astype(np.uint32) | (upper.astype(np.uint32) << np.uint32(16))]


@op("cvt.pack.sat.([us]16).s32", "b32 = s32 s32")
@op("cvt.pack.sat.([us]8).s32.b32", "b32 = s32 s32 u32")
def _packed_saturated(kind: str, chunk: Chunk, *given: Array) -> list[Array]:
    """Two numbers, and the lower bits of a third above them."""
    limits, width = np.iinfo(TYPES[kind].dtype), TYPES[kind].bits
    upper, lower = (np.clip(each, limits.min, limits.max).astype(np.int64) & (2**width - 1) for each in given[:2])
    rest = given[2].astype(np.int64) << 2 * width if len(given) > 2 else 0
    return [(lower | upper << width | rest).astype(np.uint32)]


@binds("cvt")
def _convert(instruction: Instruction) -> Step:
    """``cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a``; ``d`` and ``a`` may be in wider registers."""
    names, types = split_name(instruction)
    if len(types) != 2 or not {*names} <= ROUNDINGS | {"ftz", "sat", "relu"} or any(t.kind in "bph" for t in types):
        raise unsupported(instruction)
    expect_count(instruction, 2)
    target, source = types
    _expect_half(instruction, names, target, source)
    chosen = [name for name in names if name in ROUNDINGS]
    to_integer = target.kind not in "fe" and source.kind in "fe"
    if len(chosen) > 1 or (to_integer and not (chosen and chosen[0].endswith("i"))):
        raise unsupported(instruction, "one rounding wanted")
    rounding, saturate, ftz, relu = chosen[0] if chosen else "rn", "sat" in names, "ftz" in names, "relu" in names
    to, from_ = instruction.operands
    sums = not {"f", "e"} & {target.kind, source.kind} and not saturate and min(target.size, source.size) >= 4
    sums = sums and isinstance(to, Register) and to.type.size == target.size

    def converted(chunk: Chunk, value: Value) -> list[Value]:
        total = convert_sum(value, source, target) if sums else None
        if total is not None:
            return [total]
        return [convert(as_array(value, source), source, target, rounding, saturate=saturate, ftz=ftz, relu=relu)]

    return step_of(instruction, [(to, target)], [(from_, source)], converted, wider=True, sums=True)


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


@binds("mov")
def _move(instruction: Instruction) -> Step:
    """``mov.type d, a``, where either side may be a vector of equal parts that make up the other."""
    _, types = split_name(instruction)
    expect_count(instruction, 2)
    if len(types) != 1 or len(instruction.modifiers) != 1:
        raise unsupported(instruction)
    kind, (to, source) = types[0], instruction.operands
    group = to if isinstance(to, Group) else source
    if not isinstance(group, Group):
        return step_of(instruction, [(to, kind)], [(source, kind)], lambda chunk, value: [value], sums=True)
    count = len(group.items)
    part = TYPES.get(f"b{kind.bits // count}")
    if count not in (2, 4) or part is None or kind.kind in "pfh":
        raise unsupported(instruction, f"{count} parts of .{kind.name}")
    parts = [(item, part) for item in group.items]
    if group is to:
        return step_of(instruction, parts, [(source, kind)], lambda chunk, whole: _unpacked(whole, part))
    return step_of(
        instruction,
        [(to, kind)],
        parts,
        lambda chunk, *pieces: [np.stack(np.broadcast_arrays(*pieces), axis=-1).view(kind.dtype)[..., 0]],
    )


def _unpacked(whole: Array, part: Type) -> list[Array]:
    pieces = np.ascontiguousarray(whole)[..., None].view(part.dtype)
    return [np.ascontiguousarray(pieces[..., place]) for place in range(pieces.shape[-1])]


_SPACE = "|".join(SPACES)


@op(f"cvta(.to)?.({_SPACE}).u64", "u64 = u64", sums=True)
def _addressed(to: str | None, space: str, chunk: Chunk, value: Value) -> list[Value]:
    """Between generic addresses and those of a state space."""
    start = window(space)
    return [plus(TYPES["u64"], value, np.full((1, 1), -start if to else start, np.int64)) if start else value]


@op(f"isspacep.({_SPACE})", "pred = s64")
def _is_within(space: str, chunk: Chunk, value: Array) -> list[Array]:
    return [value >> WINDOW_BITS == WINDOWS.index(SPACES[space])]


@binds("createpolicy")
def _policy(instruction: Instruction) -> Step:
    """A number that only the L2 cache understands."""
    target = (instruction.operands[0], TYPES["u64"])
    return step_of(instruction, [target], [], lambda chunk: [np.zeros((1, 1), np.uint64)])
