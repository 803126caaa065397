"""Arithmetic instructions, one line each (PTX ISA, "Integer Arithmetic" to "Logic and Shift Instructions")."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import choose
from .arithmetic import floating, integer
from .arithmetic.directed import MODES, OPERATIONS, make_directed
from .arithmetic.floating import wrap_in_float64

I16 = frozenset({"s16", "u16"})
S32 = frozenset({"s32"})
I32 = frozenset({"s32", "u32"})
I64 = frozenset({"s64", "u64"})
INTEGERS = I16 | I32 | I64
HALFWORDS = frozenset({"s16x2", "u16x2"})
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
HALF = frozenset({"f16", "bf16"})
REAL = frozenset({"f32", "f64"})
SINGLE = frozenset({"f32"})
BITS = frozenset({"b16", "b32", "b64"})
LOGIC = BITS | {"pred"}
WORDS = frozenset({"b32", "b64"})
NONE: frozenset[str] = frozenset()
FLUSH = frozenset({"ftz"})
ROUND = frozenset({"rn", "ftz", "sat"})
APPROX = frozenset({"approx", "full", "rn", "ftz"})


class Computation(NamedTuple):
    """Row of the table.

    In ``reads`` and ``writes``, a letter is the type of an operand or of the result: ``t`` is the instruction's type,
    ``w`` a type of twice its size, ``u`` u32, and ``p`` pred.
    """

    compute: Callable[..., Any]
    reads: str
    #: Allowed types of the instruction; ``f16`` and ``bf16`` include their pairs.
    types: frozenset[str]
    #: Allowed modifiers of rounding, flushing and saturation.
    options: frozenset[str] = NONE
    writes: str = "t"


#: Instructions with a directed rounding -> keys of `directed.OPERATIONS`.
_DIRECTED = {**{name: name for name in OPERATIONS}, "mad": "fma"}
INSTRUCTIONS: dict[str, Computation] = {
    "add": Computation(np.add, "tt", INTEGERS | FLOATS | HALFWORDS, ROUND),
    "sub": Computation(np.subtract, "tt", INTEGERS | FLOATS, ROUND),
    "mul": Computation(np.multiply, "tt", FLOATS, ROUND),
    "add.sat": Computation(lambda a, b: integer.saturate_to_int32(a.astype("i8") + b), "tt", S32),
    "sub.sat": Computation(lambda a, b: integer.saturate_to_int32(a.astype("i8") - b), "tt", S32),
    "mul.lo": Computation(np.multiply, "tt", INTEGERS),
    "mul24.lo": Computation(partial(integer.multiply24, 0), "tt", I32),
    "mul24.hi": Computation(partial(integer.multiply24, 16), "tt", I32),
    "mad24.lo": Computation(lambda a, b, c: integer.multiply24(0, a, b) + c, "ttt", I32),
    "mad24.hi": Computation(lambda a, b, c: integer.multiply24(16, a, b) + c, "ttt", I32),
    "mad.hi.sat": Computation(partial(integer.multiply_add_saturated, integer.multiply_high), "ttt", S32),
    "mad24.hi.sat": Computation(partial(integer.multiply_add_saturated, partial(integer.multiply24, 16)), "ttt", S32),
    "mul.hi": Computation(integer.multiply_high, "tt", INTEGERS),
    "mul.wide": Computation(integer.multiply_wide, "tt", I16 | I32, NONE, "w"),
    "mad.lo": Computation(lambda a, b, c: a * b + c, "ttt", INTEGERS),
    "mad.hi": Computation(lambda a, b, c: integer.multiply_high(a, b) + c, "ttt", INTEGERS),
    "mad.wide": Computation(lambda a, b, c: integer.multiply_wide(a, b) + c, "ttw", I16 | I32, NONE, "w"),
    "sad": Computation(lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), "ttt", INTEGERS),
    "div": Computation(integer.divide, "tt", INTEGERS),
    "rem": Computation(integer.remainder, "tt", INTEGERS),
    "abs": Computation(np.abs, "t", INTEGERS | FLOATS, FLUSH),
    "neg": Computation(np.negative, "t", INTEGERS | FLOATS, FLUSH),
    "min": Computation(floating.minimum, "tt", INTEGERS | FLOATS | HALFWORDS, FLUSH | {"relu"}),
    "max": Computation(floating.maximum, "tt", INTEGERS | FLOATS | HALFWORDS, FLUSH | {"relu"}),
    "min.NaN": Computation(floating.minimum_nan, "tt", FLOATS, FLUSH),
    "max.NaN": Computation(floating.maximum_nan, "tt", FLOATS, FLUSH),
    "min.xorsign.abs": Computation(floating.wrap_xorsign(floating.minimum), "tt", FLOATS, FLUSH),
    "max.xorsign.abs": Computation(floating.wrap_xorsign(floating.maximum), "tt", FLOATS, FLUSH),
    "min.NaN.xorsign.abs": Computation(floating.wrap_xorsign(floating.minimum_nan), "tt", FLOATS, FLUSH),
    "max.NaN.xorsign.abs": Computation(floating.wrap_xorsign(floating.maximum_nan), "tt", FLOATS, FLUSH),
    "and": Computation(np.bitwise_and, "tt", LOGIC),
    "or": Computation(np.bitwise_or, "tt", LOGIC),
    "xor": Computation(np.bitwise_xor, "tt", LOGIC),
    "not": Computation(np.invert, "t", LOGIC),
    "cnot": Computation(lambda a: (a == 0).astype(a.dtype), "t", BITS),
    "shl": Computation(integer.shift_left, "tu", BITS),
    "shr": Computation(integer.shift_right, "tu", BITS | INTEGERS),
    "shf.l.wrap": Computation(partial(integer.funnel_left, 31), "ttu", frozenset({"b32"})),
    "shf.l.clamp": Computation(partial(integer.funnel_left, 32), "ttu", frozenset({"b32"})),
    "shf.r.wrap": Computation(partial(integer.funnel_right, 31), "ttu", frozenset({"b32"})),
    "shf.r.clamp": Computation(partial(integer.funnel_right, 32), "ttu", frozenset({"b32"})),
    "popc": Computation(integer.population_count, "t", WORDS, NONE, "u"),
    "clz": Computation(integer.leading_zeros, "t", WORDS, NONE, "u"),
    "brev": Computation(integer.reverse_bits, "t", WORDS),
    "bfind": Computation(integer.find_leading, "t", I32 | I64, NONE, "u"),
    "bfind.shiftamt": Computation(integer.shift_to_leading, "t", I32 | I64, NONE, "u"),
    "bmsk.clamp": Computation(integer.mask_clamped, "uu", frozenset({"b32"})),
    "bmsk.wrap": Computation(lambda a, b: integer.mask_clamped(a & 31, b & 31), "uu", frozenset({"b32"})),
    "bfe": Computation(integer.extract_field, "tuu", I32 | I64),
    "bfi": Computation(integer.insert_field, "ttuu", WORDS),
    "fns": Computation(integer.find_nth_set, "ttu", frozenset({"b32"})),
    "szext.clamp": Computation(partial(integer.extend, 32), "tu", I32),
    "szext.wrap": Computation(partial(integer.extend, 31), "tu", I32),
    **{
        f"prmt.{name}": Computation(partial(integer.permute_by, picks), "ttu", frozenset({"b32"}))
        for name, picks in integer.PERMUTATIONS.items()
    },
    "prmt": Computation(integer.permute_bytes, "ttu", frozenset({"b32"})),
    "lop3": Computation(integer.logic3, "tttu", frozenset({"b32"})),
    "selp": Computation(lambda a, b, p: choose(p, a, b), "ttp", BITS | INTEGERS | REAL),
    "fma": Computation(floating.fused_multiply_add, "ttt", FLOATS, ROUND | {"relu"}),
    "mad": Computation(floating.fused_multiply_add, "ttt", REAL, ROUND),
    **{
        f"{name}.{mode}": Computation(
            make_directed(operation, mode), "t" * OPERATIONS[operation].operands, REAL, FLUSH | {"sat"}
        )
        for name, operation in _DIRECTED.items()
        for mode in MODES
    },
    "div.rn": Computation(np.divide, "tt", REAL, FLUSH),
    "div.approx": Computation(np.divide, "tt", SINGLE, FLUSH),
    "div.full": Computation(np.divide, "tt", SINGLE, FLUSH),
    "rcp": Computation(lambda a: a.dtype.type(1) / a, "t", REAL, APPROX),
    "sqrt": Computation(np.sqrt, "t", REAL, APPROX),
    "rsqrt": Computation(wrap_in_float64(lambda a: 1 / np.sqrt(a)), "t", REAL, APPROX),
    "sin": Computation(wrap_in_float64(np.sin), "t", SINGLE, APPROX),
    "cos": Computation(wrap_in_float64(np.cos), "t", SINGLE, APPROX),
    "ex2": Computation(wrap_in_float64(np.exp2), "t", SINGLE | HALF, APPROX),
    "lg2": Computation(wrap_in_float64(np.log2), "t", SINGLE, APPROX),
    "tanh": Computation(wrap_in_float64(np.tanh), "t", SINGLE | HALF, APPROX),
    "copysign": Computation(lambda a, b: np.copysign(b, a), "tt", REAL),
    "testp.finite": Computation(np.isfinite, "t", REAL, NONE, "p"),
    "testp.infinite": Computation(np.isinf, "t", REAL, NONE, "p"),
    "testp.number": Computation(lambda a: ~np.isnan(a), "t", REAL, NONE, "p"),
    "testp.notanumber": Computation(np.isnan, "t", REAL, NONE, "p"),
    "testp.normal": Computation(lambda a: np.isfinite(a) & (floating.flush(a) != 0), "t", REAL, NONE, "p"),
    "testp.subnormal": Computation(lambda a: (a != 0) & (floating.flush(a) == 0), "t", REAL, NONE, "p"),
}


def _allow_unordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(a, b) | (a != a) | (b != b)


#: Comparisons of ``setp`` and ``set`` (PTX ISA, "Comparison and Selection"); lo, ls, hi and hs are unsigned.
INTEGER_COMPARISONS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge",
}  # fmt: skip
FLOAT_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a != b) & (a == a) & (b == b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": _allow_unordered(np.equal),
    "neu": np.not_equal,
    "ltu": _allow_unordered(np.less),
    "leu": _allow_unordered(np.less_equal),
    "gtu": _allow_unordered(np.greater),
    "geu": _allow_unordered(np.greater_equal),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
#: Bits that ``set`` writes for true: all ones, or 1.0. Keys: type of the result, and True for pairs; for these, the
#: bits are those of one half.
TRUE = {
    **dict.fromkeys((("u32", False), ("s32", False)), 0xFFFFFFFF),
    **dict.fromkeys((("u16", False), ("s16", False), ("u32", True), ("s32", True)), 0xFFFF),
    **dict.fromkeys((("f16", False), ("f16x2", True)), 0x3C00),
    **dict.fromkeys((("bf16", False), ("bf16x2", True)), 0x3F80),
    ("f32", False): 0x3F800000,
}
COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
