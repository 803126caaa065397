"""Integer instructions against Python's integers, wrapped to the width of the result."""

import random
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.ptxcount.snippets import evaluate


def _edges(name: str) -> list[int]:
    bits, signed = int(name[1:]), name[0] == "s"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    drawn = np.random.default_rng(bits).integers(low, high, 8, endpoint=True, dtype=f"{'i' if signed else 'u'}8")
    negative = (-1, -2, -7) if signed else ()
    return sorted({low, low + 1, high - 1, high, 0, 1, 2, 3, 7, 31, 32, *negative, *map(int, drawn)})


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(f"{ {'s': 'i', 'u': 'u', 'b': 'u'}[name[0]] }{int(name[1:]) // 8}")


def _wrap(value: int, name: str) -> int:
    bits = int(name[1:])
    value %= 2**bits
    return value - 2**bits if name[0] == "s" and value >= 2 ** (bits - 1) else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


def _shift_to_leading(bits: int, a: int) -> int:
    return bits - a.bit_length() if a else -1


def _field(signed: bool, n: int, a: int, start: int, length: int) -> int:
    """Return ``bfe`` by the pseudo-code of the PTX ISA."""
    start, length, a = start & 255, length & 255, a % (1 << n)
    sign = a >> min(start + length - 1, n - 1) & 1 if signed and length else 0
    return sum(((a >> (start + i) & 1) if i < length and start + i < n else sign) << i for i in range(n))


def _insert_bits(n: int, field: int, a: int, start: int, length: int) -> int:
    """Return ``bfi`` by the pseudo-code of the PTX ISA."""
    for i in range(min(length & 255, n - min(start & 255, n))):
        place = (start & 255) + i
        a = a & ~(1 << place) | (field >> i & 1) << place
    return a


#: Instruction without types, its types, operand types (t: same, w: twice as wide, u: u32, p: u32 with 8 bits used),
#: result type, and function of the width and the operands.
CASES: list[tuple[str, str, str, str, Callable[..., int]]] = [
    ("add", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: a + b),
    ("sub", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: a - b),
    ("mul.lo", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: a * b),
    ("mul.hi", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: a * b >> n),
    ("mul.wide", "s16 u16 s32 u32", "tt", "w", lambda n, a, b: a * b),
    ("mad.lo", "s16 s32 u32 s64 u64", "ttt", "t", lambda n, a, b, c: a * b + c),
    ("mad.hi", "s32 u32 s64 u64", "ttt", "t", lambda n, a, b, c: (a * b >> n) + c),
    ("mad.wide", "s16 u16 s32 u32", "ttw", "w", lambda n, a, b, c: a * b + c),
    ("sad", "s32 u32 s64 u64", "ttt", "t", lambda n, a, b, c: c + abs(a - b)),
    ("div", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: _quotient(a, b)),
    ("rem", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: a - _quotient(a, b) * b if b else a),
    ("min", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: min(a, b)),
    ("max", "s16 u16 s32 u32 s64 u64", "tt", "t", lambda n, a, b: max(a, b)),
    ("abs", "s16 s32 s64", "t", "t", lambda n, a: abs(a)),
    ("neg", "s16 s32 s64", "t", "t", lambda n, a: -a),
    ("add.sat", "s32", "tt", "t", lambda n, a, b: max(-(2**31), min(2**31 - 1, a + b))),
    ("sub.sat", "s32", "tt", "t", lambda n, a, b: max(-(2**31), min(2**31 - 1, a - b))),
    ("and", "b16 b32 b64", "tt", "t", lambda n, a, b: a & b),
    ("or", "b16 b32 b64", "tt", "t", lambda n, a, b: a | b),
    ("xor", "b16 b32 b64", "tt", "t", lambda n, a, b: a ^ b), ("not", "b16 b32 b64", "t", "t", lambda n, a: ~a),
    ("cnot", "b16 b32 b64", "t", "t", lambda n, a: int(a == 0)),
    ("shl", "b16 b32 b64", "tu", "t", lambda n, a, b: a << min(b, n)),
    ("shr", "b16 u16 s16 b32 u32 s32 u64 s64", "tu", "t", lambda n, a, b: a >> min(b, n)),
    ("popc", "b32 b64", "t", "u", lambda n, a: bin(a).count("1")),
    ("clz", "b32 b64", "t", "u", lambda n, a: n - a.bit_length()),
    ("brev", "b32 b64", "t", "t", lambda n, a: int(f"{a:0{n}b}"[::-1], 2)),
    ("bfind", "u32 s32 u64 s64", "t", "u", lambda n, a: (~a if a < 0 else a).bit_length() - 1),
    ("bfind.shiftamt", "u32 s32 u64 s64", "t", "u", lambda n, a: _shift_to_leading(n, ~a if a < 0 else a)),
    ("bmsk.clamp", "b32", "uu", "t", lambda n, a, b: ((1 << min(b, n)) - 1) << min(a, n)),
    ("bmsk.wrap", "b32", "uu", "t", lambda n, a, b: ((1 << b % 32) - 1) << a % 32),
    ("shf.l.wrap", "b32", "ttu", "t", lambda n, a, b, c: ((b << 32 | a) << (c & 31)) >> 32),
    ("shf.l.clamp", "b32", "ttu", "t", lambda n, a, b, c: ((b << 32 | a) << min(c, 32)) >> 32),
    ("shf.r.wrap", "b32", "ttu", "t", lambda n, a, b, c: (b << 32 | a) >> (c & 31)),
    ("bfe", "u32 u64", "tpp", "t", partial(_field, False)), ("bfe", "s32 s64", "tpp", "t", partial(_field, True)),
    ("bfi", "b32 b64", "ttpp", "t", _insert_bits),
    ("shf.r.clamp", "b32", "ttu", "t", lambda n, a, b, c: (b << 32 | a) >> min(c, 32)),
]  # fmt: skip
AMOUNTS = {"u": [0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 2**31, 2**32 - 1],
           "p": [0, 1, 7, 16, 31, 32, 33, 63, 64, 200, 255, 256 + 3]}  # fmt: skip
ROWS = [(name, kind, *row_columns) for name, kinds, *row_columns in CASES for kind in kinds.split()]


@pytest.mark.parametrize(("name", "kind", "reads", "writes", "oracle"), ROWS, ids=[f"{r[0]}.{r[1]}" for r in ROWS])
def test_integers_as_in_python(name: str, kind: str, reads: str, writes: str, oracle: Callable[..., int]) -> None:
    wide = f"{kind[0]}{int(kind[1:]) * 2}"
    types = [{"t": kind, "w": wide}.get(role, "u32") for role in reads]
    result = {"t": kind, "w": wide, "u": "u32"}[writes]
    rows = [*product(*(AMOUNTS.get(role) or _edges(t) for t, role in zip(types, reads, strict=True)))]
    rows = random.Random(1).sample(rows, min(len(rows), 1024))
    operands = [np.array(column, _dtype(t)) for column, t in zip(zip(*rows, strict=True), types, strict=True)]
    got = evaluate(f"{name}.{kind}", operands, _dtype(result))
    expected = [_wrap(oracle(int(kind[1:]), *row), result) for row in rows]
    assert got.tolist() == expected


#: Pairs of instructions that pass a carry, and the result in twice the width: a and b are the lower halves, c and e the
#: upper ones.
CARRIED: list[tuple[str, str, str, Callable[..., int]]] = [
    ("u32 s32 u64 s64", "add.cc.{t} {{d}}, {{a}}, {{b}}", "addc.{t} {{d}}, {{c}}, {{e}}",
     lambda n, a, b, c, e: ((c << n) + a + (e << n) + b) >> n),
    ("u32 s32 u64 s64", "sub.cc.{t} {{d}}, {{a}}, {{b}}", "subc.{t} {{d}}, {{c}}, {{e}}",
     lambda n, a, b, c, e: ((c << n) + a - (e << n) - b) >> n),
    ("u32 u64", "mad.lo.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}", "madc.hi.{t} {{d}}, {{a}}, {{b}}, {{e}}",
     lambda n, a, b, c, e: (a * b + c + (e << n)) >> n),
    ("s32 s64", "add.cc.{t} {{d}}, {{a}}, {{b}}", "madc.hi.{t} {{d}}, {{c}}, {{e}}, 5",
     lambda n, a, b, c, e: (c * e >> n) + 5 + (((a % 2**n) + (b % 2**n)) >> n)),
    ("u32 u64", "add.cc.{t} {{d}}, {{a}}, {{b}}; addc.cc.{t} {{d}}, {{c}}, {{e}}", "addc.{t} {{d}}, 7, 0",
     lambda n, a, b, c, e: 7 + (((c << n) + a + (e << n) + b) >> 2 * n)),
    ("u32 u64", "sub.cc.{t} {{d}}, {{a}}, {{b}}; subc.cc.{t} {{d}}, {{c}}, {{e}}", "subc.{t} {{d}}, 7, 0",
     lambda n, a, b, c, e: 7 + (((c << n) + a - (e << n) - b) >> 2 * n)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "first", "second", "oracle"),
    [(kind, *instructions) for kinds, *instructions in CARRIED for kind in kinds.split()],
)
def test_carry_reaches_the_next_instruction(kind: str, first: str, second: str, oracle: Callable[..., int]) -> None:
    edges = _edges(kind)
    rows = np.random.default_rng(2).choice(len(edges), (1024, 4))
    operands = [np.array([edges[k] for k in column], _dtype(kind)) for column in rows.T]
    got = evaluate(f"{first}; {second}".format(t=kind), operands, _dtype(kind))
    bits = int(kind[1:])
    for result, *row in zip(got.tolist(), *(operand.tolist() for operand in operands), strict=True):
        a, b, *upper = row
        lower = (a, b) if "madc.hi" in second else (a % 2**bits, b % 2**bits)  # unsigned, except for products
        assert result == _wrap(oracle(bits, *lower, *upper), kind), row


def test_mov_packs_words() -> None:
    words = list(np.random.default_rng(9).integers(0, 2**32, (2, 64), dtype=np.uint32))
    packed = evaluate("mov.b64 {d}, {{{a}, {b}}}", words, np.uint64)
    assert packed.tolist() == [x | y << 32 for x, y in zip(*(operand.tolist() for operand in words), strict=True)]


def test_mov_keeps_the_bits_of_a_double() -> None:
    bits = np.float64(0.1).view(np.uint64)
    assert evaluate(f"mov.b64 {{d}}, 0d{bits:016X}", [np.zeros(1, np.uint32)], np.uint64).tolist() == [bits]
