"""The instructions that compute: one line each (PTX ISA, "Integer Arithmetic" to "Logic and Shift Instructions").

How each operand is read: ``t`` as the instruction's type, ``w`` at twice its width, ``u`` as u32, ``p`` as a predicate.
The result is written the same way. Options are modifiers that change how, not what (rounding, flushing, saturation).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import floating, integer
from .floating import through_double

I16 = frozenset({"s16", "u16"})
I32 = frozenset({"s32", "u32"})
I64 = frozenset({"s64", "u64"})
INTEGERS = I16 | I32 | I64
FLOATS = frozenset({"f16", "f32", "f64"})
REAL = frozenset({"f32", "f64"})
SINGLE = frozenset({"f32"})
BITS = frozenset({"b16", "b32", "b64"})
LOGIC = BITS | {"pred"}
WORDS = frozenset({"b32", "b64"})
NONE: frozenset[str] = frozenset()
FLUSH = frozenset({"ftz"})
ROUND = frozenset({"rn", "ftz", "sat"})
APPROX = frozenset({"approx", "full", "rn", "ftz"})


class Operation(NamedTuple):
    """What an instruction computes, how its operands are read and its result is written, and for which types."""

    compute: Callable[..., Any]
    reads: str
    types: frozenset[str]
    options: frozenset[str] = NONE
    writes: str = "t"


def _not(a: Any) -> Any:
    return ~a


INSTRUCTIONS: dict[str, Operation] = {
    "add": Operation(np.add, "tt", INTEGERS | FLOATS, ROUND),
    "sub": Operation(np.subtract, "tt", INTEGERS | FLOATS, ROUND),
    "mul": Operation(np.multiply, "tt", FLOATS, ROUND),
    "add.sat": Operation(lambda a, b: integer.saturated(a.astype("i8") + b, "i4"), "tt", frozenset({"s32"})),
    "sub.sat": Operation(lambda a, b: integer.saturated(a.astype("i8") - b, "i4"), "tt", frozenset({"s32"})),
    "mul.lo": Operation(np.multiply, "tt", INTEGERS),
    "mul.hi": Operation(integer.multiply_high, "tt", INTEGERS),
    "mul.wide": Operation(integer.multiply_wide, "tt", I16 | I32, NONE, "w"),
    "mad.lo": Operation(lambda a, b, c: a * b + c, "ttt", INTEGERS),
    "mad.hi": Operation(lambda a, b, c: integer.multiply_high(a, b) + c, "ttt", INTEGERS),
    "mad.wide": Operation(lambda a, b, c: integer.multiply_wide(a, b) + c, "ttw", I16 | I32, NONE, "w"),
    "sad": Operation(lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), "ttt", INTEGERS),
    "div": Operation(integer.divide, "tt", INTEGERS),
    "rem": Operation(integer.remainder, "tt", INTEGERS),
    "abs": Operation(np.abs, "t", INTEGERS | FLOATS, FLUSH),
    "neg": Operation(np.negative, "t", INTEGERS | FLOATS, FLUSH),
    "min": Operation(floating.minimum, "tt", INTEGERS | FLOATS, FLUSH),
    "max": Operation(floating.maximum, "tt", INTEGERS | FLOATS, FLUSH),
    "min.NaN": Operation(floating.minimum_nan, "tt", FLOATS, FLUSH),
    "max.NaN": Operation(floating.maximum_nan, "tt", FLOATS, FLUSH),
    "and": Operation(np.bitwise_and, "tt", LOGIC),
    "or": Operation(np.bitwise_or, "tt", LOGIC),
    "xor": Operation(np.bitwise_xor, "tt", LOGIC),
    "not": Operation(_not, "t", LOGIC),
    "cnot": Operation(lambda a: (a == 0).astype(a.dtype), "t", BITS),
    "shl": Operation(integer.shift_left, "tu", BITS),
    "shr": Operation(integer.shift_right, "tu", BITS | INTEGERS),
    "shf.l.wrap": Operation(partial(integer.funnel_left, 31), "ttu", frozenset({"b32"})),
    "shf.l.clamp": Operation(partial(integer.funnel_left, 32), "ttu", frozenset({"b32"})),
    "shf.r.wrap": Operation(partial(integer.funnel_right, 31), "ttu", frozenset({"b32"})),
    "shf.r.clamp": Operation(partial(integer.funnel_right, 32), "ttu", frozenset({"b32"})),
    "popc": Operation(integer.population_count, "t", WORDS, NONE, "u"),
    "clz": Operation(integer.leading_zeros, "t", WORDS, NONE, "u"),
    "brev": Operation(integer.reverse_bits, "t", WORDS),
    "bfind": Operation(integer.find_leading, "t", I32 | I64, NONE, "u"),
    "bfe": Operation(integer.extract_field, "tuu", I32 | I64),
    "bfi": Operation(integer.insert_field, "ttuu", WORDS),
    "prmt": Operation(integer.permute_bytes, "ttu", frozenset({"b32"})),
    "lop3": Operation(integer.logic3, "tttu", frozenset({"b32"})),
    "selp": Operation(lambda a, b, p: np.where(p, a, b), "ttp", BITS | INTEGERS | REAL),
    "fma": Operation(floating.fused_multiply_add, "ttt", FLOATS, ROUND),
    "mad": Operation(floating.fused_multiply_add, "ttt", REAL, ROUND),
    "div.rn": Operation(np.divide, "tt", REAL, FLUSH),
    "div.approx": Operation(np.divide, "tt", SINGLE, FLUSH),
    "div.full": Operation(np.divide, "tt", SINGLE, FLUSH),
    "rcp": Operation(lambda a: a.dtype.type(1) / a, "t", REAL, APPROX),
    "sqrt": Operation(np.sqrt, "t", REAL, APPROX),
    "rsqrt": Operation(through_double(lambda a: 1 / np.sqrt(a)), "t", REAL, APPROX),
    "sin": Operation(through_double(np.sin), "t", SINGLE, APPROX),
    "cos": Operation(through_double(np.cos), "t", SINGLE, APPROX),
    "ex2": Operation(through_double(np.exp2), "t", SINGLE | {"f16"}, APPROX),
    "lg2": Operation(through_double(np.log2), "t", SINGLE, APPROX),
    "tanh": Operation(through_double(np.tanh), "t", SINGLE | {"f16"}, APPROX),
    "copysign": Operation(lambda a, b: np.copysign(b, a), "tt", REAL),
    "testp.finite": Operation(np.isfinite, "t", REAL, NONE, "p"),
    "testp.infinite": Operation(np.isinf, "t", REAL, NONE, "p"),
    "testp.number": Operation(lambda a: ~np.isnan(a), "t", REAL, NONE, "p"),
    "testp.notanumber": Operation(np.isnan, "t", REAL, NONE, "p"),
    "testp.normal": Operation(floating.is_normal, "t", REAL, NONE, "p"),
    "testp.subnormal": Operation(floating.is_subnormal, "t", REAL, NONE, "p"),
}


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(a, b) & (a == a) & (b == b)


def _unordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(a, b) | (a != a) | (b != b)


#: The comparisons of ``setp`` and ``set`` (PTX ISA, "Comparison and Selection"); lo, ls, hi, hs are lt, le, gt, ge,
#: of unsigned types.
INTEGER_COMPARISONS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge",
}  # fmt: skip
FLOAT_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": _ordered(np.not_equal),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": _unordered(np.equal),
    "neu": np.not_equal,
    "ltu": _unordered(np.less),
    "leu": _unordered(np.less_equal),
    "gtu": _unordered(np.greater),
    "geu": _unordered(np.greater_equal),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}

#: Instructions that are more than a computation; ``bind`` says what they do.
_OTHERS = frozenset(
    [
        "activemask",
        "atom",
        "bar",
        "barrier",
        "bra",
        "cvt",
        "cvta",
        "discard",
        "exit",
        "fence",
        "ld",
        "ldu",
        "membar",
        "mov",
        "nanosleep",
        "prefetch",
        "prefetchu",
        "red",
        "ret",
        "set",
        "setp",
        "shfl",
        "st",
        "trap",
        "vote",
    ]
)
OPCODES = frozenset(key.split(".")[0] for key in INSTRUCTIONS) | _OTHERS
