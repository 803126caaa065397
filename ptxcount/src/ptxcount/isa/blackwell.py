"""Arithmetic that PTX has for sm_100 and later (PTX ISA 8.6 to 9.2), and conversions of floats of 4, 6 and 8 bits."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import numpy as np

from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction
from .arithmetic import bfloat
from .arithmetic.convert import NAN_OF_HALF
from .arithmetic.directed import OPERATIONS, make_directed
from .arithmetic.floating import apply_relu, clamp01, flush, join_halves, maximum, maximum_nan, minimum, minimum_nan
from .arithmetic.narrow_float import FORMATS, NarrowFormat, decode_scale, encode_scale
from .opcode_registry import Step, allow_clamps, binds, make_step, op
from .operands import expect_count, make_count_error, split_group, unsupported
from .warp_collectives import compute_by_mask

_EXTREMES = {"min": minimum, "max": maximum, "minNaN": minimum_nan, "maxNaN": maximum_nan}
#: The NaN of ``redux``.
_CANONICAL_NAN = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
_NARROW = "|".join(name for name in FORMATS if name != "e2m1x2")
_THREE_OPERANDS = re.compile(r"(min|max)(\.ftz)?(\.NaN)?(\.abs)?\.f32")


@binds("min", "max")
def _bind_three_operands(instruction: Instruction) -> Step | None:
    """Bind ``max{.ftz}{.NaN}{.abs}.f32 d, a, b, c``. The form with two operands is a row of the table."""
    match = _THREE_OPERANDS.fullmatch(instruction.name)
    if match is None or len(instruction.operands) != 4:
        return None
    name, ftz, nan, absolute = match.groups()
    choose, f32 = _EXTREMES[f"{name}NaN" if nan else name], TYPES["f32"]

    def compute_extreme(chunk: Chunk, *numbers: Array) -> list[Array]:
        flushed = [flush(number) for number in numbers] if ftz else numbers
        return [reduce(choose, [np.abs(number) for number in flushed] if absolute else flushed)]

    target, *sources = instruction.operands
    return make_step(instruction, [(target, f32)], [(source, f32) for source in sources], compute_extreme)


@op("redux.sync.(min|max)(.abs)?(.NaN)?.f32", "f32 = f32 u32")
def _reduce_floats(
    name: str, absolute: str | None, nan: str | None, chunk: Chunk, values: Array, masks: Array
) -> list[Array]:
    """Reduce over the active lanes. Numbers win over NaN, except with ``.NaN``."""
    choose = _EXTREMES[f"{name}NaN" if nan else name]
    neutral = np.float32(np.inf if name == "min" else -np.inf) if nan else np.float32(np.nan)

    def reduce_lanes(lanes: Array, active: Array) -> list[Array]:
        """Reduce neighbouring lanes in pairs until one is left. The number of lanes is a power of two."""
        partial = np.where(active, np.abs(lanes) if absolute else lanes, neutral)
        while partial.shape[2] > 1:
            partial = choose(partial[:, :, ::2].copy(), partial[:, :, 1::2].copy())
        return [np.where(np.isnan(partial), _CANONICAL_NAN, partial)]

    return compute_by_mask(chunk, values, masks, reduce_lanes)


@op("(add|sub|mul)(?:.(rn|rz|rm|rp))?(.ftz)?.f32x2", "b64 = b64 b64")
@op("(fma).(rn|rz|rm|rp)(.ftz)?.f32x2", "b64 = b64 b64 b64")
def _compute_pairs(name: str, rounding: str | None, ftz: str | None, chunk: Chunk, *words: Array) -> list[Array]:
    compute = OPERATIONS[name].nearest if rounding in (None, "rn") else make_directed(name, str(rounding))
    pairs = [np.ascontiguousarray(word)[..., None].view(np.float32) for word in words]
    result = compute(*map(flush, pairs)) if ftz else compute(*pairs)
    return [np.ascontiguousarray(flush(result) if ftz else result).view(np.uint64)[..., 0]]


@op("(add|sub)(?:.(rn|rz|rm|rp))?(.sat)?.f32.(f16|bf16)", "f32 = $4 f32")
@op("(fma).(rn|rz|rm|rp)(.sat)?.f32.(f16|bf16)", "f32 = $4 $4 f32")
def _compute_mixed(
    name: str, rounding: str | None, sat: str | None, kind: str, chunk: Chunk, *values: Array
) -> list[Array]:
    """Widen all operands except the last from 16-bit floats, which is exact, and compute in float32."""
    widen: Any = bfloat.decode_bits if kind == "bf16" else lambda halves: halves.astype(np.float32)
    compute = OPERATIONS[name].nearest if rounding in (None, "rn") else make_directed(name, str(rounding))
    result = compute(*map(widen, values[:-1]), values[-1])
    return [clamp01(result) if sat else result]


def _split_halves(word: Array, kind: str) -> list[Array]:
    """Return the two numbers of a 32-bit word as float64, the upper one first; ``kind`` is f16x2 or bf16x2."""
    bits = [(word >> np.uint32(shift)).astype(np.uint16) for shift in (16, 0)]
    halves = [bfloat.decode_bits(half) if kind == "bf16x2" else half.view(np.float16) for half in bits]
    return [half.astype(np.float64) for half in halves]


def _decode_scales(scale: Array) -> list[Array]:
    """Return the scales of two numbers, the upper one first."""
    return [decode_scale((scale >> shift) & 0xFF) for shift in (8, 0)]


@op(allow_clamps("cvt.rn[saturated].(e2m1x2).(f32)"), "b8 = f32 f32")
@op(allow_clamps("cvt.rn[saturated].(e2m1x2).(f16x2|bf16x2)"), "b8 = b32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2|e4m3x2|e5m2x2|s2f6x2).(f32)"), "b16 = f32 f32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2|e4m3x2|e5m2x2).(f16x2)"), "b16 = b32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2|e4m3x2|e5m2x2|s2f6x2).(bf16x2)"), "b16 = b32")
def _convert_to_narrow(clamps: str, target: str, source: str, chunk: Chunk, *values: Array) -> list[Array]:
    numbers = list(values) if source == "f32" else _split_halves(values[0], source)
    return _encode_narrow(target, numbers, relu=".relu" in clamps)


@op("cvt.rn.satfinite(.relu)?.scaled::n2::ue8m0.(s2f6x2).f32", "b16 = f32 f32 b16")
@op("cvt.rn.satfinite(.relu)?.scaled::n2::ue8m0.(s2f6x2).bf16x2", "b16 = b32 b16")
def _convert_to_scaled(relu: str | None, target: str, chunk: Chunk, *values: Array) -> list[Array]:
    *operands, scale = values
    numbers = operands if len(operands) == 2 else _split_halves(operands[0], "bf16x2")
    factors = _decode_scales(scale)
    scaled = [number.astype(np.float64) / factor for number, factor in zip(numbers, factors, strict=True)]
    return _encode_narrow(target, scaled, relu=bool(relu))


def _encode_narrow(target: str, numbers: list[Array], *, relu: bool) -> list[Array]:
    """Encode two numbers in a word of 8 or 16 bits, the first in the upper half."""
    bits, _, encode = FORMATS[target]
    high, low = (encode(apply_relu(number) if relu else number) for number in numbers)
    word = low.astype(np.uint16) | (high.astype(np.uint16) << np.uint16(bits))
    return [word.astype(np.uint8 if bits == 4 else np.uint16)]


@op("cvt.rn(.relu)?.f16x2.(e2m1x2)", "b32 = b8")
@op("cvt.rn(.relu)?.f16x2.(e2m3x2|e3m2x2|e4m3x2|e5m2x2)", "b32 = b16")
def _convert_to_halves(relu: str | None, source: str, chunk: Chunk, word: Array) -> list[Array]:
    numbers = [apply_relu(number) if relu else number for number in _decode_narrow(source, word)]
    high, low = (np.where(np.isnan(number), NAN_OF_HALF, number.astype(np.float16)) for number in numbers)
    return [join_halves(low.view(np.uint16), high.view(np.uint16))]


@op(allow_clamps("cvt.rn[clamps](?:.scaled::n2::ue8m0)?.bf16x2.(e2m1x2)"), "b32 = b8 b16?")
@op(allow_clamps(f"cvt.rn[clamps](?:.scaled::n2::ue8m0)?.bf16x2.({_NARROW})"), "b32 = b16 b16?")
def _convert_to_scaled_halves(clamps: str, source: str, chunk: Chunk, word: Array, *scale: Array) -> list[Array]:
    numbers = _decode_narrow(source, word)
    if scale:
        numbers = [number * factor for number, factor in zip(numbers, _decode_scales(*scale), strict=True)]
    if ".relu" in clamps:
        numbers = [apply_relu(number) for number in numbers]
    high, low = (bfloat.encode_bits(number) for number in numbers)
    if ".satfinite" in clamps:
        high, low = bfloat.clamp_infinities(high), bfloat.clamp_infinities(low)
    return [join_halves(low, high)]


def _decode_narrow(source: str, word: Array) -> list[Array]:
    """Return the two numbers of a word as float64, the upper one first; ``source`` is a key of `FORMATS`."""
    bits, decode, _ = FORMATS[source]
    return [decode((word >> shift) & (2**bits - 1)) for shift in (bits, 0)]


@op("cvt.(rz|rp)(.satfinite)?.ue8m0x2.f32", "b16 = f32 f32")
@op("cvt.(rz|rp)(.satfinite)?.ue8m0x2.bf16x2", "b16 = b32")
def _convert_to_scales(rounding: str, saturate: str | None, chunk: Chunk, *values: Array) -> list[Array]:
    numbers = list(values) if len(values) == 2 else _split_halves(values[0], "bf16x2")
    high, low = (encode_scale(number, rounding, saturate=bool(saturate)).astype(np.uint16) for number in numbers)
    return [low | (high << np.uint16(8))]


@op("cvt.rn.bf16x2.ue8m0x2", "b32 = b16")
def _convert_from_scales(chunk: Chunk, word: Array) -> list[Array]:
    high, low = map(bfloat.encode_bits, _decode_scales(word))
    return [join_halves(low, high)]


#: ``cvt.rs`` to four floats. Two operands share 16 random bits. The PTX ISA does not say which operand gets which bits,
#: and GPUs differ. Measurements show straight bytes on sm_100a, reversed bits on sm_103a (github.com/Dao-AILab/quack,
#: ``quack/rounding.py``). So ptxcount only converts numbers whose result is the same on both: exact or clamped numbers,
#: or any numbers with random bits that are zero.
_RANDOM_ROUNDING = re.compile(allow_clamps("cvt.rs[saturated].(e4m3|e5m2|e2m3|e3m2|e2m1)x4.f32").replace(".", r"\."))
#: The bits that the first two operands share, as a mask, by the width of a result; the last two share the others.
_UPPER_BITS = {4: 0xFF00FF00, 8: 0xFFFF0000}


@binds("cvt", having={"rs"})
def _bind_random_rounding(instruction: Instruction) -> Step:
    """Bind ``cvt.rs{.relu}.satfinite.typex4.f32 d, {a, b, e, f}, rbits``; ``a`` becomes the highest bits."""
    match = _RANDOM_ROUNDING.fullmatch(instruction.name)
    if match is None:
        forms = "cvt.rs{.relu}.satfinite.{e4m3,e5m2,e2m3,e3m2,e2m1}x4.f32, cvt.rs{.relu}{.satfinite}.{f16,bf16}x2.f32"
        raise unsupported(instruction, f"its forms are {forms}")
    expect_count(instruction, 3)
    target, numbers, word = instruction.operands
    sources = split_group(numbers)
    if len(sources) != 4:
        raise make_count_error(instruction, "it", len(sources), "number", 4)
    narrow, relu = FORMATS[f"{match[2]}x2"], ".relu" in match[1]
    upper = np.uint32(_UPPER_BITS[narrow.bits])
    kind = TYPES[f"b{4 * narrow.bits}"]

    def convert(chunk: Chunk, *values: Array) -> list[Array]:
        *floats, words = values
        packed = np.zeros(1, np.uint32)
        for place, number in enumerate(floats):
            random = words & (upper if place < 2 else ~upper)
            codes = _round_number(chunk, apply_relu(number) if relu else number, random, narrow)
            packed = packed << np.uint32(narrow.bits) | codes.astype(np.uint32)
        return [packed.astype(kind.dtype)]

    reads = [*((source, TYPES["f32"]) for source in sources), (word, TYPES["u32"])]
    return make_step(instruction, [(target, kind)], reads, convert)


def _round_number(chunk: Chunk, numbers: Array, random: Array, narrow: NarrowFormat) -> Array:
    """Return the codes of numbers rounded towards zero; raise if a set random bit may change the result."""
    magnitudes, greatest = np.abs(numbers).astype(np.float64), narrow.encode(np.array([np.inf]))
    nearest = narrow.encode(magnitudes)
    below = np.where(narrow.decode(nearest) > magnitudes, nearest - 1, nearest)
    above = np.where(narrow.decode(below) < magnitudes, below + 1, below)
    above = np.minimum(above, np.maximum(greatest, below))
    undefined = spread((below != above) & (random != 0), chunk.shape) & spread(chunk.active, chunk.shape)
    if undefined.any():
        number = spread(numbers, chunk.shape)[undefined][0]
        problem = f"{number:g} is not exact in this type, and the PTX ISA does not say which random bits round it"
        raise unsupported(chunk.instruction, f"{problem}; pass zero bits or exact numbers")
    return np.where(np.isnan(numbers), nearest, below | narrow.encode(np.copysign(0.0, numbers)))
