"""Tables of opcodes: comparisons of every type, and integer instructions at limits of types."""

import math
import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptxcount.isa.table import COMBINATIONS, FLOAT_COMPARISONS, INTEGER_COMPARISONS, TRUE
from tests.ptxcount.snippets import evaluate

_PLAIN: dict[str, Callable[[Any, Any], bool]] = {n: getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge")}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1.5, 6e-8, -6e-8, 65504.0, math.inf, -math.inf, math.nan]
#: Encoding and decoding of each float type; bits of bfloat16 are the upper half of a float32.
FLOATS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "f16": ("f2", lambda x: np.array(x, "f2"), lambda x: x),
    "f32": ("f4", lambda x: np.array(x, "f4"), lambda x: x),
    "f64": ("f8", lambda x: np.array(x, "f8"), lambda x: x),
    "bf16": ("u2", lambda x: (np.array(x, "f4").view("u4") >> 16).astype("u2"),
             lambda x: (x.astype("u4") << 16).view("f4")),
}  # fmt: skip


def _floats(name: str, a: float, b: float) -> bool:
    """Compare floats by the definitions of the PTX ISA."""
    unknown = math.isnan(a) or math.isnan(b)
    if name in ("num", "nan"):
        return unknown == (name == "nan")
    return unknown if unknown and name.endswith("u") else not unknown and _PLAIN[name.removesuffix("u")](a, b)


def _integers(kind: str) -> Any:
    info = np.iinfo(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], info.dtype)


@pytest.mark.parametrize("kind", [f"{sign}{bits}" for sign in "sub" for bits in (16, 32, 64)])
def test_integers_compare_as_in_python(kind: str) -> None:
    ends = _integers(kind)
    a, b = (np.array(column, ends.dtype) for column in zip(*product(ends, ends), strict=True))
    for name in INTEGER_COMPARISONS:
        # forms that PTX lacks
        if (kind[0] == "s" and name in _UNSIGNED) or (kind[0] == "b" and name not in ("eq", "ne")):
            continue
        expected = [_PLAIN[_UNSIGNED.get(name, name)](int(x), int(y)) for x, y in zip(a, b, strict=True)]
        assert evaluate(f"setp.{name}.{kind}", [a, b], "?").tolist() == expected
        opposite = evaluate(f"setp.{name}.{kind} %p1|{{d}}, {{a}}, {{b}}", [a, b], "?")
        assert opposite.tolist() == [not outcome for outcome in expected]
        outcomes = evaluate(f"set.{name}.u32.{kind}", [a, b], "u4")
        assert outcomes.tolist() == [0xFFFFFFFF * outcome for outcome in expected]
        for logic in COMBINATIONS:
            third = np.arange(len(a)) % 2 == 0
            combined = evaluate(f"setp.{name}.{logic}.{kind} {{d}}, {{a}}, {{b}}, !{{c}}", [a, b, third], "?")
            combine = getattr(operator, f"{logic}_" if logic != "xor" else "xor")
            assert combined.tolist() == [*map(combine, expected, (~third).tolist())]


@pytest.mark.parametrize(("kind", "flushes"), [*((kind, False) for kind in FLOATS), ("f16", True), ("f32", True)])
def test_floats_compare_as_in_the_ptx_isa(kind: str, flushes: bool) -> None:
    dtype, encoded, decoded = FLOATS[kind]
    a, b = (encoded(column) for column in zip(*product(NUMBERS, NUMBERS), strict=True))
    tiny = float(np.finfo(dtype).tiny) if flushes else 0.0
    values = [[math.copysign(0, x) if abs(x) < tiny else x for x in decoded(operand).tolist()] for operand in (a, b)]
    ftz = ".ftz" if flushes else ""
    for name in FLOAT_COMPARISONS:
        expected = [_floats(name, x, y) for x, y in zip(*values, strict=True)]
        assert evaluate(f"setp.{name}{ftz}.{kind}", [a, b], "?").tolist() == expected, name
        for (result, pair), true in TRUE.items():
            if pair or (result.endswith("16") and result != kind):  # of 16 bits, only the operands' type
                continue
            bits = f"u{2 if result.endswith('16') else 4}"
            outcomes = evaluate(f"set.{name}{ftz}.{result}.{kind}", [a, b], bits)
            assert outcomes.tolist() == [true * outcome for outcome in expected], (name, result)
        if kind in ("f16", "bf16"):
            # each element with the one before
            low, high = ([np.roll(x.view("u2"), step).astype("u4") for x in (a, b)] for step in (0, 1))
            words = [x | y << 16 for x, y in zip(low, high, strict=True)]
            outcomes = evaluate(f"set.{name}{ftz}.u32.{kind}x2", words, "u4")
            halves = zip(expected, np.roll(expected, 1).tolist(), strict=True)
            assert outcomes.tolist() == [0xFFFF * first | 0xFFFF0000 * second for first, second in halves]


def _sign_extend(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)


def _split(word: int, bits: int, signed: bool) -> list[int]:
    parts = [word >> place & (1 << bits) - 1 for place in range(0, 32, bits)]
    return [_sign_extend(part, bits) for part in parts] if signed else parts


def _join(values: list[int], bits: int = 8) -> int:
    return sum((value & (1 << bits) - 1) << bits * k for k, value in enumerate(values))


def _parts(operation: Callable[[int, int], int], bits: int, signed: bool) -> Callable[..., int]:
    return lambda a, b, c=0: _join([*map(operation, _split(a, bits, signed), _split(b, bits, signed))], bits)


def _fns(mask: int, base: int, offset: int) -> int:
    places = [p for p in range(32) if mask >> p & 1]
    if offset == 0:
        return base if base in places else 0xFFFFFFFF
    candidates = [p for p in places if p >= base] if offset > 0 else [p for p in reversed(places) if p <= base]
    return candidates[abs(offset) - 1] if len(candidates) >= abs(offset) else 0xFFFFFFFF


def _prmt(picks: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, c: _join([(b << 32 | a) >> 8 * (picks(place, c & 3) & 7) for place in range(4)])


def _permute(a: int, b: int, c: int) -> int:
    """Return ``prmt``: for each selector a byte, or its sign in all bits if the selector has bit 3."""
    picks = [c >> 4 * place & 15 for place in range(4)]
    return _join([_sign_extend((b << 32 | a) >> 8 * (pick & 7), 8) >> (7 if pick & 8 else 0) for pick in picks])


def _logic(table: int) -> Callable[[int, int, int], int]:
    """Return ``lop3``, whose table has a bit for each three bits of the operands."""
    return lambda *words: _join(
        [table >> _join([w >> n & 1 for w in words[::-1]], bits=1) & 1 for n in range(32)], bits=1
    )


def _products(name: str, first: bool, second: bool) -> Callable[[int, int, int], int]:
    """Return ``dp4a``, the sum of products of bytes, or ``dp2a``, of 16-bit numbers and the lower or upper bytes."""
    bits, skipped = {"dp4a": (8, 0), "dp2a.lo": (16, 0), "dp2a.hi": (16, 2)}[name]
    return lambda a, b, c: c + sum(map(operator.mul, _split(a, bits, first), _split(b, 8, second)[skipped:]))


def _mul24(a: int, b: int) -> int:
    return _sign_extend(a, 24) * _sign_extend(b, 24)


def _szext(a: int, bits: int) -> int:
    return _sign_extend(a, min(bits, 32)) if bits else 0


def _clamp(value: int, bits: int) -> int:
    return min(max(value, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


#: Instruction on words, number of operands, and function of the result.
WORDS: list[tuple[str, int, Callable[..., int]]] = [
    *((f"{name}.{kind}", 2, _parts(function, 16, kind[0] == "s"))
      for name, function in (("add", operator.add), ("min", min), ("max", max)) for kind in ("s16x2", "u16x2")),
    ("max.relu.s16x2", 2, _parts(lambda x, y: max(x, y, 0), 16, True)),
    ("min.relu.s16x2", 2, _parts(lambda x, y: max(min(x, y), 0), 16, True)),
    ("max.relu.s32", 2, lambda a, b: max(_sign_extend(a, 32), _sign_extend(b, 32), 0)),
    ("mul24.lo.s32", 2, _mul24), ("mul24.hi.s32", 2, lambda a, b: _mul24(a, b) >> 16),
    ("mul24.hi.u32", 2, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("mad24.lo.s32", 3, lambda a, b, c: _mul24(a, b) + c),
    ("mad24.hi.sat.s32", 3, lambda a, b, c: _clamp(_sign_extend(_mul24(a, b) >> 16, 32) + _sign_extend(c, 32), 32)),
    ("mad.hi.sat.s32", 3, lambda a, b, c: _clamp(
        (_sign_extend(a, 32) * _sign_extend(b, 32) >> 32) + _sign_extend(c, 32), 32)),
    ("szext.clamp.s32", 2, _szext), ("szext.wrap.s32", 2, lambda a, b: _szext(a, b & 31)),
    ("szext.clamp.u32", 2, lambda a, b: a & (1 << min(b, 32)) - 1),
    ("slct.u32.s32", 3, lambda a, b, c: a if _sign_extend(c, 32) >= 0 else b),
    ("prmt.b32.f4e", 3, _prmt(lambda place, n: n + place)), ("prmt.b32.b4e", 3, _prmt(lambda place, n: n - place)),
    ("prmt.b32.rc8", 3, _prmt(lambda place, n: n)), ("prmt.b32.ecl", 3, _prmt(max)), ("prmt.b32.ecr", 3, _prmt(min)),
    ("prmt.b32.rc16", 3, _prmt(lambda place, n: place % 2 + 2 * (n % 2))),
    *((f"cvt.pack.sat.s{bits}.s32.b32", 3, lambda a, b, c, bits=bits: _join(
        [_clamp(_sign_extend(x, 32), bits) for x in (b, a)], bits) | c << 2 * bits) for bits in (2, 4, 8)),
    *((f"cvt.pack.sat.u{bits}.s32.b32", 3, lambda a, b, c, most=2**bits - 1, bits=bits: _join(
        [min(max(_sign_extend(x, 32), 0), most) for x in (b, a)], bits) | c << 2 * bits) for bits in (2, 4, 8)),
    *((f"v{name}{count}.{kind}.{kind}.{kind}", 3, _parts(operation, 32 // count, kind == "s32"))
      for name, operation in (("add", operator.add), ("sub", operator.sub), ("absdiff", lambda x, y: abs(x - y)),
                              ("avrg", lambda x, y: (x + y + 1) >> 1), ("min", min), ("max", max))
      for count in (2, 4) for kind in ("u32", "s32")),
    ("vadd4.s32.s32.s32.sat", 3, _parts(lambda x, y: _clamp(x + y, 8), 8, True)),
    *((f"vabsdiff4.{kind}.{kind}.s32.add", 3, lambda a, b, c, signed=kind == "s32": c + sum(
        abs(x - y) for x, y in zip(_split(a, 8, signed), _split(b, 8, True), strict=True))) for kind in ("s32", "u32")),
    ("vset4.s32.s32.lt", 3, _parts(operator.lt, 8, True)),
    *((f"{name}.{a_kind}.{b_kind}", 3, _products(name, a_kind == "s32", b_kind == "s32"))
      for name in ("dp4a", "dp2a.lo", "dp2a.hi") for a_kind in ("u32", "s32") for b_kind in ("u32", "s32")),
    *((f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table}", 3, _logic(table))
      for table in (0x00, 0x80, 0xFE, 0x96, 0xCA, 0xE8, 0xFF, 0x1B)),
    ("prmt.b32", 3, _permute),
    ("vadd.u32.u32.s32", 2, lambda a, b: a + b), ("vset.s32.u32.gt", 2, lambda a, b: _sign_extend(a, 32) > b),
    ("vsub.s32.u32.s32.sat", 2, lambda a, b: _clamp(a - _sign_extend(b, 32), 32)),
    ("vabsdiff.u32.s32.s32.max", 3, lambda a, b, c: max(abs(_sign_extend(a, 32) - _sign_extend(b, 32)), c)),
    ("vmax.s32.s32.s32.min", 3, lambda a, b, c: min(
        max(_sign_extend(a, 32), _sign_extend(b, 32)), _sign_extend(c, 32))),
    ("vmin.u32.u32.u32.add", 3, lambda a, b, c: min(a, b) + c),
    ("vshr.u32.u32.u32.clamp.add", 3, lambda a, b, c: (a >> min(b, 32)) + c),
    ("vshr.u32.s32.u32.wrap", 2, lambda a, b: _sign_extend(a, 32) >> b % 32),
    ("vshl.u32.u32.u32.clamp", 2, lambda a, b: a << min(b, 32)),
    ("vshl.s32.s32.u32.wrap.add", 3, lambda a, b, c: (_sign_extend(a, 32) << b % 32) + c),
]  # fmt: skip
ENDS = np.array([0, 1, 2, 7, 8, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0x80008000, 0x7FFF8000,
                 0x7F80FF01, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)  # fmt: skip


@pytest.mark.parametrize(("instruction", "count", "oracle"), WORDS, ids=[row[0] for row in WORDS])
def test_words_as_in_python(instruction: str, count: int, oracle: Callable[..., int]) -> None:
    rng = np.random.default_rng(len(instruction))
    rows: list[Any] = [*product(ENDS, ENDS)]
    if count == 3:
        rows = [*rng.choice(ENDS, (500, 3)).tolist(), *rng.integers(0, 2**32, (500, 3)).tolist()]
    operands = [np.array(column, np.uint32) for column in zip(*rows, strict=True)]
    results = evaluate(instruction, operands, "u4").tolist()
    assert results == [oracle(*map(int, row)) & 0xFFFFFFFF for row in rows]


def test_fns_finds_the_nth_set_bit() -> None:
    """Masks have no bit, three, all, and the lowest and highest bit. A negative offset counts downwards."""
    cases = [(mask, base, offset) for mask in (0, 0b10110, 0xFFFFFFFF, 0x80000001) for base in (0, 2, 3, 31)
             for offset in (0, 1, 2, -1, -2, 32, -32)]  # fmt: skip
    operands = [np.array(column, np.int64).astype(np.uint32) for column in zip(*cases, strict=True)]
    results = evaluate("fns.b32", operands, "u4").tolist()
    assert results == [_fns(*case) for case in cases]


@pytest.mark.parametrize("name", ["and", "or"])
def test_lop3_combines_its_predicate(name: str) -> None:
    """The predicate is that of a result that is not 0; the table 0x80 is the AND of the three operands."""
    a, b, c = (np.array(column, np.uint32) for column in ([6, 6, 6, 6], [3, 3, 3, 3], [2, 1, 2, 1]))
    third = np.array([True, True, False, False])
    code = f"setp.ne.u32 %p1, {{e}}, 0; lop3.{name}.b32 %r1|{{d}}, {{a}}, {{b}}, {{c}}, 0x80, %p1"
    expected = [getattr(operator, f"{name}_")(bool(6 & 3 & int(x)), bool(y)) for x, y in zip(c, third, strict=True)]
    assert evaluate(code, [a, b, c, third.astype(np.uint32)], "?").tolist() == expected
