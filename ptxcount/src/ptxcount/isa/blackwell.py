"""Arithmetic and conversions that PTX has for sm_100 and later (PTX ISA 8.6 to 9.2)."""

import re
from functools import reduce
from typing import Any

import numpy as np

from ..lanes.warps import Array
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction
from .arithmetic import bfloat
from .arithmetic.directed import OPERATIONS, make_directed
from .arithmetic.floating import clamp01, flush, maximum, maximum_nan, minimum, minimum_nan, positive
from .arithmetic.narrow_float import FORMATS, decode_scale, encode_scale
from .opcode_registry import Step, allow_clamps, binds, op, step_of
from .warp_collectives import compute_by_mask

_EXTREMES = {"min": minimum, "max": maximum, "minNaN": minimum_nan, "maxNaN": maximum_nan}
#: The NaN of ``redux`` and of conversions to ``bf16x2``.
_CANONICAL_NAN = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
_NARROW = "|".join(name for name in FORMATS if name != "e2m1x2")


_OF_THREE = re.compile(r"(min|max)(\.ftz)?(\.NaN)?(\.abs)?\.f32")


@binds("min", "max")
def _extreme_of_three(instruction: Instruction) -> Step | None:
    """Bind ``max{.ftz}{.NaN}{.abs}.f32 d, a, b, c``. The form with two operands is a row of the table."""
    match = _OF_THREE.fullmatch(instruction.name)
    if match is None or len(instruction.operands) != 4:
        return None
    name, ftz, nan, absolute = match.groups()
    choose, f32 = _EXTREMES[f"{name}NaN" if nan else name], TYPES["f32"]

    def extreme(chunk: Chunk, *values: Array) -> list[Array]:
        numbers = [flush(value) for value in values] if ftz else list(values)
        return [reduce(choose, [np.abs(number) for number in numbers] if absolute else numbers)]

    target, *sources = instruction.operands
    return step_of(instruction, [(target, f32)], [(source, f32) for source in sources], extreme)


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
    """Widen 16-bit floats, which is exact, and compute in float32."""
    widen: Any = bfloat.decode_bits if kind == "bf16" else lambda halves: halves.astype(np.float32)
    compute = OPERATIONS[name].nearest if rounding in (None, "rn") else make_directed(name, str(rounding))
    result = compute(*map(widen, values[:-1]), values[-1])
    return [clamp01(result) if sat else result]


def _split_halves(word: Array, kind: str) -> list[Array]:
    """Return the two numbers of a 32-bit word as float64, the upper one first; ``kind`` is f16x2 or bf16x2."""
    halves = [(word >> np.uint32(shift)).astype(np.uint16) for shift in (16, 0)]
    return [
        (bfloat.decode_bits(half) if kind[0] == "b" else half.view(np.float16)).astype(np.float64) for half in halves
    ]


def _decode_scales(scale: tuple[Array, ...]) -> list[Any]:
    """Return the scales of two numbers from a ``ue8m0x2`` operand, the upper one first; 1 without an operand."""
    return [decode_scale((factor >> shift) & 0xFF) for factor in scale for shift in (8, 0)] or [1.0, 1.0]


@op(allow_clamps("cvt.rn[saturated].(e2m1x2).(f32)"), "b8 = f32 f32")
@op(allow_clamps("cvt.rn[saturated].(e2m1x2).(f16x2|bf16x2)"), "b8 = b32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2|s2f6x2).(f32)"), "b16 = f32 f32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2).(f16x2)"), "b16 = b32")
@op(allow_clamps("cvt.rn[saturated].(e2m3x2|e3m2x2|e4m3x2|e5m2x2|s2f6x2).(bf16x2)"), "b16 = b32")
def _convert_to_narrow(clamps: str, target: str, source: str, chunk: Chunk, *values: Array) -> list[Array]:
    numbers = list(values) if source == "f32" else _split_halves(values[0], source)
    return _encode_narrow(".relu" in clamps, target, numbers, ())


@op("cvt.rn.satfinite(.relu)?.scaled::n2::ue8m0.(s2f6x2).f32", "b16 = f32 f32 b16")
@op("cvt.rn.satfinite(.relu)?.scaled::n2::ue8m0.(s2f6x2).bf16x2", "b16 = b32 b16")
def _convert_to_scaled(relu: str | None, target: str, chunk: Chunk, *values: Array) -> list[Array]:
    *numbers, scale = values
    return _encode_narrow(relu, target, numbers if numbers[1:] else _split_halves(values[0], "bf16x2"), (scale,))


def _encode_narrow(relu: str | bool | None, target: str, numbers: list[Array], scale: tuple[Array, ...]) -> list[Array]:
    bits, _, encode = FORMATS[target]
    scaled = [number.astype(np.float64) / factor for number, factor in zip(numbers, _decode_scales(scale), strict=True)]
    high, low = (encode(positive(number) if relu else number) for number in scaled)
    word = low.astype(np.uint16) | (high.astype(np.uint16) << np.uint16(bits))
    return [word.astype(np.uint8 if bits == 4 else np.uint16)]


@op("cvt.rn(.relu)?.(f16)x2.(e2m1x2)", "b32 = b8")
@op("cvt.rn(.relu)?.(f16)x2.(e2m3x2|e3m2x2)", "b32 = b16")
def _convert_to_halves(relu: str | None, half: str, source: str, chunk: Chunk, word: Array) -> list[Array]:
    high, low = (positive(number) if relu else number for number in _decode_narrow(source, word))
    bits = [number.astype(np.float16).view(np.uint16).astype(np.uint32) for number in (high, low)]
    return [bits[1] | (bits[0] << np.uint32(16))]


@op(allow_clamps("cvt.rn[clamps](?:.scaled::n2::ue8m0)?.bf16x2.(e2m1x2)"), "b32 = b8 b16?")
@op(allow_clamps(f"cvt.rn[clamps](?:.scaled::n2::ue8m0)?.bf16x2.({_NARROW})"), "b32 = b16 b16?")
def _convert_to_scaled_halves(clamps: str, source: str, chunk: Chunk, word: Array, *scale: Array) -> list[Array]:
    numbers = [
        number * factor for number, factor in zip(_decode_narrow(source, word), _decode_scales(scale), strict=True)
    ]
    if ".relu" in clamps:
        numbers = [positive(number) for number in numbers]
    words = [bfloat.encode_bits(number) for number in numbers]
    if ".satfinite" in clamps:
        words = [bfloat.clamp_infinities(bits) for bits in words]
    return [words[1].astype(np.uint32) | (words[0].astype(np.uint32) << np.uint32(16))]


def _decode_narrow(source: str, word: Array) -> list[Array]:
    """Return the two numbers of a word, the upper one first."""
    bits, decode, _ = FORMATS[source]
    return [decode((word >> shift) & (2**bits - 1)) for shift in (bits, 0)]


@op("cvt.(rz|rp)(.satfinite)?.ue8m0x2.f32", "b16 = f32 f32")
@op("cvt.(rz|rp)(.satfinite)?.ue8m0x2.bf16x2", "b16 = b32")
def _convert_to_powers(rounding: str, saturate: str | None, chunk: Chunk, *values: Array) -> list[Array]:
    numbers = list(values) if len(values) == 2 else _split_halves(values[0], "bf16x2")
    high, low = (encode_scale(number, rounding, saturate=bool(saturate)).astype(np.uint16) for number in numbers)
    return [low | (high << np.uint16(8))]


@op("cvt.rn.bf16x2.ue8m0x2", "b32 = b16")
def _convert_from_powers(chunk: Chunk, word: Array) -> list[Array]:
    high, low = (bfloat.encode_bits(factor).astype(np.uint32) for factor in _decode_scales((word,)))
    return [low | (high << np.uint32(16))]
