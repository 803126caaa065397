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
from .arithmetic.floating import apply_relu, join_halves
from .arithmetic.narrow_float import FORMATS
from .opcode_registry import Step, allow_clamps, binds, make_step, op
from .operands import add_offset, as_array, expect_count, split_name, unsupported
from .spaces import SPACES, WINDOW_BITS, WINDOWS, window_base

#: Number added to the bits of a float before the lowest 13 are truncated, by rounding modifier.
_TF32: dict[str, Callable[[Array], Any]] = {
    "rna": lambda bits: 0x1000,
    "rn": lambda bits: 0xFFF + (bits >> 13 & 1),
    "rz": lambda bits: 0,
}
#: NaN of f16 converted from 8-bit floats, as on an H200.
_HALF_NAN = 0x7FFF


@op(allow_clamps("cvt.(rna|rn|rz)[clamps].tf32.f32"), "b32 = u32")
def _convert_tf32(rounding: str, clamps: str, chunk: Chunk, bits: Array) -> list[Array]:
    """Round the bits of float32 to tf32, which has 10 mantissa bits; the bits of NaN are those of an H200."""
    nan_bits = bits if rounding == "rna" else 0x7FFFFFFF
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    if ".relu" in clamps:
        bits = np.where(is_nan | (bits < 0x80000000), bits, 0).astype(np.uint32)
    rounded = (np.where(is_nan, nan_bits, bits + _TF32[rounding](bits)) & 0xFFFFE000).astype(np.uint32)
    if ".satfinite" in clamps:
        rounded = np.where((rounded & 0x7FFFFFFF) == 0x7F800000, rounded - np.uint32(0x2000), rounded)
    return [rounded]


@op(allow_clamps("cvt.rn[saturated].(e4m3x2|e5m2x2).f32"), "b16 = f32 f32")
@op(allow_clamps("cvt.rn[saturated].(e4m3x2|e5m2x2).f16x2"), "b16 = b32")
def _encode_pair(clamps: str, kind: str, chunk: Chunk, *floats: Array) -> list[Array]:
    """Encode two float32, the first in the upper byte, or the halves of one f16x2."""
    if len(floats) == 1:
        halves = np.stack([floats[0] & 0xFFFF, floats[0] >> 16], axis=-1).astype(np.uint16).view(np.float16)
    else:
        halves = np.stack(np.broadcast_arrays(*floats[::-1]), axis=-1)
    codes = FORMATS[kind].encode(apply_relu(halves) if ".relu" in clamps else halves)
    return [codes[..., 0] | (codes[..., 1].astype(np.uint16) << np.uint16(8))]


@op("cvt.rn(.relu)?.f16x2.(e4m3x2|e5m2x2)", "b32 = b16")
def _decode_pair(relu: str | None, kind: str, chunk: Chunk, pair: Array) -> list[Array]:
    halves = [FORMATS[kind].decode(byte).astype(np.float16) for byte in (pair & 0xFF, pair >> 8)]
    if relu:
        halves = [apply_relu(half) for half in halves]
    return [join_halves(*(np.where(np.isnan(half), _HALF_NAN, half.view(np.uint16)) for half in halves))]


#: Number of random bits per result, which are added to the truncated mantissa bits (PTX ISA, ``cvt``, ``rbits``).
_RANDOM_BITS = {"f16": 13, "bf16": 16}


@op(allow_clamps("cvt.(rn|rz)[clamps].(f16|bf16)x2.f32"), "b32 = f32 f32")
@op(allow_clamps("cvt.(rs)[clamps].(f16|bf16)x2.f32"), "b32 = f32 f32 u32")
def _pack_halves(rounding: str, clamps: str, half: str, chunk: Chunk, *operands: Array) -> list[Array]:
    """Pack two floats as f16x2 or bf16x2, the first in the upper half."""
    upper, lower = operands[:2]
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
    """Round float32 to the precision of ``half``: add random bits below the last kept bit, then truncate.

    ``words`` have the random bits in their lowest 13 (f16) or 16 bits (bf16).
    """
    if half == "f16":
        _refuse_outside_normal(chunk, numbers, clamps)
    bits, mask = numbers.view(np.uint32), np.uint32((1 << _RANDOM_BITS[half]) - 1)
    return np.where(np.isfinite(numbers), (bits + (words & mask)) & ~mask, bits).view(np.float32)


def _refuse_outside_normal(chunk: Chunk, values: Array, clamps: str) -> None:
    """Raise if random bits decide a result that is not normal f16: the PTX ISA does not define their alignment."""
    magnitudes = np.abs(values)
    is_small = (values.astype(np.float16) != values) & (magnitudes < np.finfo(np.float16).smallest_normal)
    is_large = np.isfinite(values) & (magnitudes >= 2.0**16) & (".satfinite" not in clamps)
    undefined = (is_small | is_large) & ~((values < 0) & (".relu" in clamps))
    undefined = spread(undefined, chunk.shape) & spread(chunk.active, chunk.shape)
    if undefined.any():
        number = spread(values, chunk.shape)[undefined][0]
        problem = f"it rounds {number:g} with random bits; the PTX ISA defines only normal results of f16"
        raise unsupported(chunk.instruction, problem)


@op("cvt.pack.sat.([us])(16).s32", "b32 = s32 s32")
@op("cvt.pack.sat.([us])(8|4|2).s32.b32", "b32 = s32 s32 u32")
def _pack_saturated(sign: str, bits: str, chunk: Chunk, *integers: Array) -> list[Array]:
    """Pack two integers, clamped to ``bits`` bits each, the second lowest; above both, the lower bits of a third."""
    width = int(bits)
    least, mask = -(1 << width - 1) if sign == "s" else 0, (1 << width) - 1
    upper, lower = (np.clip(integer, least, least + mask).astype(np.int64) & mask for integer in integers[:2])
    upper_bits = integers[2].astype(np.int64) << 2 * width if len(integers) > 2 else 0
    return [(lower | upper << width | upper_bits).astype(np.uint32)]


@binds("cvt")
def _bind_conversion(instruction: Instruction) -> Step | None:
    """Bind ``cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a``; ``d`` and ``a`` may be in wider registers."""
    names, types = split_name(instruction)
    options = {"ftz", "sat", "relu", "satfinite"}
    if "rs" in names:
        return None
    if len(types) != 2 or not {*names} <= ROUNDINGS | options or any(t.kind in "bphv" for t in types):
        raise unsupported(instruction)
    expect_count(instruction, 2)
    target, source = types
    _expect_half_form(instruction, names, target, source)
    roundings = [name for name in names if name in ROUNDINGS]
    to_integer = target.kind not in "fe" and source.kind in "fe"
    if len(roundings) > 1:
        raise unsupported(instruction, "it has several rounding modifiers; give one")
    if to_integer and not (roundings and roundings[0].endswith("i")):
        raise unsupported(instruction, "a conversion to integers needs .rni, .rzi, .rmi or .rpi")
    rounding, saturate = roundings[0] if roundings else "rn", "sat" in names
    flags = {name: name in names for name in ("ftz", "relu", "satfinite")}
    target_register, source_register = instruction.operands
    keeps_sum = not {"f", "e"} & {target.kind, source.kind} and not saturate and min(target.size, source.size) >= 4
    keeps_sum = keeps_sum and isinstance(target_register, Register) and target_register.type.size == target.size

    def convert_value(chunk: Chunk, value: Value) -> list[Value]:
        converted = convert_sum(value, source, target) if keeps_sum else None
        if converted is not None:
            return [converted]
        return [convert(as_array(value, source), source, target, rounding, saturate=saturate, **flags)]

    return make_step(
        instruction, [(target_register, target)], [(source_register, source)], convert_value, wider=True, sums=True
    )


def _expect_half_form(instruction: Instruction, names: list[str], target: Type, source: Type) -> None:
    """Raise for ``.relu`` and ``.satfinite`` except from f32 to a 16-bit float, and for undefined forms of bfloat16."""
    clamps = {"relu", "satfinite"} & {*names}
    if clamps and not (source.name == "f32" and target.size == 2 and target.kind in "fe"):
        raise unsupported(instruction, ".relu and .satfinite need a 16-bit result of .f32")
    if "e" in (target.kind, source.kind):
        roundings = {"rn", *MODES}
        # Between 16-bit floats, the rounding modifier is optional: rn.
        between_halves = target.size == 2 == source.size and source.kind in "fe" and {*names} <= roundings
        narrows = between_halves or (target.size == 2 and source.kind in "fesu" and roundings & {*names})
        widens = {*names} <= roundings | {"ftz"} and target.kind == "f" and target.size > 2
        becomes_whole = target.kind in "su" or {*names} & {*TO_INTEGER}
        is_defined = narrows or (source.kind == "e" and (widens or becomes_whole))
        if not is_defined or "sat" in names or "bf16x2" in (source.name, target.name):
            raise unsupported(instruction)


@binds("mov")
def _bind_move(instruction: Instruction) -> Step:
    """Bind ``mov.type d, a``; either operand may be a vector of equal parts of the other."""
    _, types = split_name(instruction)
    expect_count(instruction, 2)
    if len(types) != 1 or len(instruction.modifiers) != 1:
        raise unsupported(instruction, "it needs one type, and no other modifier")
    kind, (target, source) = types[0], instruction.operands
    group = target if isinstance(target, Group) else source
    if not isinstance(group, Group):
        return make_step(instruction, [(target, kind)], [(source, kind)], lambda chunk, value: [value], sums=True)
    count = len(group.items)
    part = TYPES.get(f"b{kind.bits // count}")
    if count not in (2, 4) or part is None or kind.kind in "pfh":
        problem = f"a .{kind.name} cannot be split into {count_noun(count, 'part')}"
        raise unsupported(instruction, f"{problem}; it needs a .b type and 2 or 4 parts of at least 8 bits")
    parts = [(item, part) for item in group.items]
    if group is target:
        return make_step(instruction, parts, [(source, kind)], lambda chunk, packed: _split_parts(packed, part))

    def join_parts(chunk: Chunk, *pieces: Array) -> list[Array]:
        return [np.stack(np.broadcast_arrays(*pieces), axis=-1).view(kind.dtype)[..., 0]]

    return make_step(instruction, [(target, kind)], parts, join_parts)


def _split_parts(value: Array, part: Type) -> list[Array]:
    """Split values into parts of a type, the lowest first."""
    pieces = np.ascontiguousarray(value)[..., None].view(part.dtype)
    return [np.ascontiguousarray(pieces[..., place]) for place in range(pieces.shape[-1])]


_SPACE = "|".join(SPACES)


@op(f"cvta(.to)?.({_SPACE}).u64", "u64 = u64", sums=True)
def _convert_address(to_space: str | None, space: str, chunk: Chunk, value: Value) -> list[Value]:
    """Convert between generic addresses and addresses of a state space."""
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
