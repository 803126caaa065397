"""``mov``, ``cvt`` and ``cvta``: moves, packing, conversions, and addresses of other state spaces."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value, convert_sum
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Group, Instruction, Register, Type
from ..util.grammar import count_noun
from .arithmetic.convert import ROUNDINGS, TO_INTEGER, convert
from .arithmetic.directed import MODES
from .arithmetic.floating import join_halves
from .opcode_registry import Step, allow_clamps, binds, explain_forms, make_step, op
from .operands import (
    add_offset,
    as_array,
    expect_count,
    expect_modifiers,
    find_modifier,
    join_modifiers,
    split_name,
    unsupported,
)
from .spaces import SPACES, WINDOW_BITS, WINDOWS, window_base

#: Bits of a float32: all but the sign; those of infinity; and those that tf32 keeps.
_MAGNITUDE, _INFINITY, _TF32_BITS = 0x7FFFFFFF, 0x7F800000, 0xFFFFE000
#: Number added to the bits of a float before the lowest 13 are truncated, by rounding modifier.
_TF32: dict[str, Callable[[Array], Any]] = {
    "rna": lambda bits: 0x1000,
    "rn": lambda bits: 0xFFF + (bits >> 13 & 1),
    "rz": lambda bits: 0,
}


@op(allow_clamps("cvt.(rna|rn|rz)[clamps].tf32.f32"), "b32 = u32")
def _convert_tf32(rounding: str, clamps: str, chunk: Chunk, bits: Array) -> list[Array]:
    """Round the bits of float32 to tf32, which has 10 mantissa bits; the bits of NaN are those of an H200."""
    nan_bits = bits if rounding == "rna" else _MAGNITUDE
    is_nan = (bits & _MAGNITUDE) > _INFINITY
    if ".relu" in clamps:
        bits = np.where(is_nan | (bits <= _MAGNITUDE), bits, 0).astype(np.uint32)
    rounded = (np.where(is_nan, nan_bits, bits + _TF32[rounding](bits)) & _TF32_BITS).astype(np.uint32)
    if ".satfinite" in clamps:
        rounded = np.where((rounded & _MAGNITUDE) == _INFINITY, rounded - np.uint32(1 << 13), rounded)
    return [rounded]


#: Number of random bits per result, which are added to the truncated mantissa bits (PTX ISA, ``cvt``, ``rbits``).
_RANDOM_BITS = {"f16": 13, "bf16": 16}


@op(allow_clamps("cvt.(rn|rz)[clamps].(f16x2|bf16x2).f32"), "b32 = f32 f32")
@op(allow_clamps("cvt.(rs)[clamps].(f16x2|bf16x2).f32"), "b32 = f32 f32 u32")
def _pack_halves(rounding: str, clamps: str, kind: str, chunk: Chunk, *operands: Array) -> list[Array]:
    """Pack two floats, the first in the upper half. With ``rs``, a third operand has the random bits."""
    half, (upper, lower) = kind.removesuffix("x2"), operands[:2]
    options = {name: name in clamps for name in ("relu", "satfinite")}
    if rounding == "rs":
        upper = _round_randomly(chunk, upper, operands[2] >> np.uint32(16), half, clamps)
        lower = _round_randomly(chunk, lower, operands[2], half, clamps)
        rounding = "rn"
    halves = [
        convert(number, TYPES["f32"], TYPES[half], rounding, saturate=False, ftz=False, **options).view(np.uint16)
        for number in (lower, upper)
    ]
    return [join_halves(*halves)]


def _round_randomly(chunk: Chunk, numbers: Array, words: Array, half: str, clamps: str) -> Array:
    """Add the lowest bits of ``words``, 13 for f16 or 16 for bf16, below the last kept bit, then truncate."""
    if half == "f16":
        _refuse_outside_normal(chunk, numbers, clamps)
    bits, mask = numbers.view(np.uint32), np.uint32((1 << _RANDOM_BITS[half]) - 1)
    return np.where(np.isfinite(numbers), (bits + (words & mask)) & ~mask, bits).view(np.float32)


def _refuse_outside_normal(chunk: Chunk, values: Array, clamps: str) -> None:
    """Raise if a number must be rounded, but not to a normal f16: the PTX ISA does not say where random bits go then.

    This is a subnormal number that is not exact in f16, or a number too large for f16. ``.satfinite`` clamps the large
    numbers, and ``.relu`` the negative ones.
    """
    magnitudes = np.abs(values)
    is_small = (values.astype(np.float16) != values) & (magnitudes < np.finfo(np.float16).smallest_normal)
    is_large = np.isfinite(values) & (magnitudes >= 2.0**16) & (".satfinite" not in clamps)
    undefined = (is_small | is_large) & ~((values < 0) & (".relu" in clamps))
    undefined = spread(undefined, chunk.shape) & spread(chunk.active, chunk.shape)
    if undefined.any():
        number = spread(values, chunk.shape)[undefined][0]
        problem = f"{number:g} is not in the range of normal f16, in which the PTX ISA defines random rounding (.rs)"
        remedy = "scale it" if abs(number) < 1 else "scale it, or add .satfinite"
        raise unsupported(chunk.instruction, f"{problem}; {remedy}")


@op("cvt.pack.sat.([us])(16).s32", "b32 = s32 s32")
@op("cvt.pack.sat.([us])(8|4|2).s32.b32", "b32 = s32 s32 u32")
def _pack_saturated(sign: str, bits: str, chunk: Chunk, *integers: Array) -> list[Array]:
    """Clamp two integers to ``bits`` bits, and pack them, the second one lowest, below a third one if there is one."""
    width = int(bits)
    least, mask = -(1 << width - 1) if sign == "s" else 0, (1 << width) - 1
    upper, lower = (np.clip(integer, least, least + mask).astype(np.int64) & mask for integer in integers[:2])
    upper_bits = integers[2].astype(np.int64) << 2 * width if len(integers) > 2 else 0
    return [(lower | upper << width | upper_bits).astype(np.uint32)]


@binds("cvt")
def _bind_conversion(instruction: Instruction) -> Step | None:
    """Bind ``cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a``; ``d`` and ``a`` may be in wider registers."""
    names, types = split_name(instruction)
    if "rs" in names:
        return None
    unknown = [name for name in names if name not in ROUNDINGS | {"ftz", "sat", "relu", "satfinite"}]
    unknown += [kind.name for kind in types if kind.kind not in ("s", "u", "f", "bf16") or kind.name == "bf16x2"]
    if unknown:
        forms, form = explain_forms("cvt", *instruction.modifiers[-2:]), "cvt{.rounding}{.ftz}{.sat}.dtype.atype"
        raise unsupported(instruction, forms or f"the modifier .{unknown[0]} is not allowed; the form is {form}")
    _, (target, source) = split_name(instruction, 2)
    expect_count(instruction, 2)
    _refuse_undefined_half(instruction, names, target, source)
    rounding = find_modifier(instruction, ROUNDINGS) or "rn"
    if source.is_float and not target.is_float and rounding not in TO_INTEGER:
        raise unsupported(instruction, "a conversion to integers needs .rni, .rzi, .rmi or .rpi")
    flags = {name: name in names for name in ("ftz", "relu", "satfinite")} | {"saturate": "sat" in names}
    target_register, source_register = instruction.operands
    # A sum stays one from words to words, without clamping, in a register of the target's size.
    is_of_words = not target.is_float and not source.is_float and min(target.size, source.size) >= 4
    fits_register = isinstance(target_register, Register) and target_register.type.size == target.size
    keeps_sum = is_of_words and fits_register and "sat" not in names

    def convert_value(chunk: Chunk, value: Value) -> list[Value]:
        converted = convert_sum(value, source, target) if keeps_sum else None
        if converted is not None:
            return [converted]
        return [convert(as_array(value, source), source, target, rounding, **flags)]

    writes, reads = [(target_register, target)], [(source_register, source)]
    return make_step(instruction, writes, reads, convert_value, wider=True, sums=True)


def _refuse_undefined_half(instruction: Instruction, modifiers: list[str], target: Type, source: Type) -> None:
    """Raise for undefined forms of bfloat16, and for ``.relu`` and ``.satfinite`` except from f32 to a 16-bit float."""
    to_half = target.size == 2 and target.is_float
    if not {"relu", "satfinite"}.isdisjoint(modifiers) and not (to_half and source.name == "f32"):
        given = f"it converts .{source.name} to .{target.name}"
        raise unsupported(instruction, f"{given}; .relu and .satfinite need .f32 to .f16 or .bf16")
    if "bf16" not in (target.kind, source.kind):
        return
    if "sat" in modifiers:
        raise unsupported(instruction, ".sat does not exist for .bf16")
    rounds_by_default = source.is_float and source.size == 2 and not modifiers
    becomes_whole = source.kind == "bf16" and not TO_INTEGER.keys().isdisjoint(modifiers)
    roundings = ("rn", *MODES)
    has_rounding = any(modifier in roundings for modifier in modifiers)
    if to_half and not (rounds_by_default or becomes_whole or has_rounding):
        needed = join_modifiers(roundings)
        raise unsupported(instruction, f"from .{source.name} to .{target.name}, it needs one of {needed}")


@binds("mov")
def _bind_move(instruction: Instruction) -> Step:
    """Bind ``mov.type d, a``; either operand may be a vector of equal parts of the other."""
    names, (kind,) = split_name(instruction, 1)
    expect_modifiers(instruction, names, ())
    expect_count(instruction, 2)
    target, source = instruction.operands
    group = target if isinstance(target, Group) else source
    if not isinstance(group, Group):
        return make_step(instruction, [(target, kind)], [(source, kind)], lambda chunk, value: [value], sums=True)
    count = len(group.items)
    part = TYPES.get(f"b{kind.bits // count}")
    if count not in (2, 4) or part is None or kind.kind in ("pred", "f", "f16x2"):
        problem = f"a .{kind.name} cannot be split into {count_noun(count, 'part')}"
        raise unsupported(instruction, f"{problem}; it needs a .b type and 2 or 4 parts of at least 8 bits")
    parts = [(item, part) for item in group.items]
    if group is target:
        return make_step(instruction, parts, [(source, kind)], lambda chunk, packed: _split_parts(packed, part))

    def join_parts(chunk: Chunk, *pieces: Array) -> list[Array]:
        return [np.stack(np.broadcast_arrays(*pieces), axis=-1).view(kind.dtype)[..., 0]]

    return make_step(instruction, [(target, kind)], parts, join_parts)


def _split_parts(value: Array, part: Type) -> list[Array]:
    pieces = np.ascontiguousarray(value)[..., None].view(part.dtype)
    return [np.ascontiguousarray(pieces[..., place]) for place in range(pieces.shape[-1])]


_SPACE = "|".join(SPACES)


@op(f"cvta(.to)?.({_SPACE}).u64", "u64 = u64", sums=True)
def _convert_address(to_space: str | None, space: str, chunk: Chunk, value: Value) -> list[Value]:
    start = window_base(space)
    if not start:
        return [value]
    return [add_offset(TYPES["u64"], value, np.full((1, 1), -start if to_space else start, np.int64))]


@op(f"isspacep.({_SPACE})", "pred = s64")
def _is_in_space(space: str, chunk: Chunk, value: Array) -> list[Array]:
    return [value >> WINDOW_BITS == WINDOWS.index(SPACES[space])]


@binds("createpolicy")
def _bind_policy(instruction: Instruction) -> Step:
    """Bind ``createpolicy`` to zero: only the L2 cache reads the policy."""
    expect_count(instruction, 1, 2, 4)
    target = (instruction.operands[0], TYPES["u64"])
    return make_step(instruction, [target], [], lambda chunk: [np.zeros((1, 1), np.uint64)])
