"""Floating-point instructions and conversions against exact fractions, rounded once."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptxcount.lanes.warps import Array
from tests.ptxcount.exact_floats import ROUNDINGS, assert_same, list_values, multiply_add, round_fraction
from tests.ptxcount.snippets import evaluate

DTYPES: dict[str, np.dtype[Any]] = {"f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8")}
NAN, INF = math.nan, math.inf
#: The smallest normal float32, and the greatest subnormal one.
TINY = float(np.finfo(np.float32).tiny)
BELOW_TINY = float(np.nextafter(np.float32(TINY), np.float32(0)))


@pytest.mark.parametrize("name", DTYPES)
def test_fma_rounds_once(name: str) -> None:
    dtype = DTYPES[name]
    few = list_values(dtype, 4)
    rows = list(product(few, few, few))
    a, b, c = (np.array(x).astype(dtype) for x in zip(*rows, strict=True))
    rng = np.random.default_rng(5)
    near = (rng.normal(size=(2, 1000))).astype(dtype)
    with np.errstate(all="ignore"):
        cancel = -(near[0] * near[1])
    # the exact result of the last 1000 rows is the rounding error of a product
    a, b, c = np.append(a, near[0]), np.append(b, near[1]), np.append(c, cancel)
    for start in range(0, len(a), 1024):
        part = [x[start : start + 1024] for x in (a, b, c)]
        got = evaluate(f"fma.rn.{name}", part, dtype)
        expected = [multiply_add(float(x), float(y), float(z), dtype) for x, y, z in zip(*part, strict=True)]
        assert_same(got, np.array(expected).astype(dtype))


@pytest.mark.parametrize("exponent", [-149, -60])  # subnormal and normal numbers
def test_fma_near_midpoints_rounds_once(exponent: int) -> None:
    """These sums are so close to the middle of two float32 that float64 rounds them to the middle."""
    multiples = [1001, 1002, 2**22 + 1, 2**23 - 1, 2**23 + 1, 2**24 - 1]
    rows = [(sign * (1 + 2**-23), 1 - 2**-23, multiple) for sign in (1, -1) for multiple in multiples]
    half = exponent // 2
    a, b, c = np.ldexp(rows, (half, exponent - 1 - half, exponent)).astype("f4").T
    expected = [multiply_add(float(x), float(y), float(z), np.dtype("f4")) for x, y, z in zip(a, b, c, strict=True)]
    assert_same(evaluate("fma.rn.f32", [a, b, c], "f4"), np.array(expected).astype("f4"))


def test_fma_of_extremes_rounds_once() -> None:
    rng, powers = np.random.default_rng(11), (-1070, -800, -500, -401, -399, -300, 0, 300, 399, 401, 500, 800, 990)
    exponents = np.array(list(product(powers, powers)))
    a, b = np.ldexp(rng.uniform(1, 2, (len(exponents), 2)) * rng.choice([-1, 1], (len(exponents), 2)), exponents).T
    with np.errstate(all="ignore"):
        negated = -(a * b)
    for c in (np.zeros_like(a), negated, np.nextafter(negated, 0), np.ldexp(1.0, rng.integers(-1070, 1000, len(a)))):
        got = evaluate("fma.rn.f64", [a, b, c], "f8")
        expected = [multiply_add(float(x), float(y), float(z), np.dtype("f8")) for x, y, z in zip(a, b, c, strict=True)]
        assert_same(got, np.array(expected))


def _root(exact: Fraction, dtype: np.dtype[Any], mode: str) -> float:
    """Return the rounded square root of a fraction, from the integer root of a multiple with more bits than a float."""
    scaled = exact * Fraction(4) ** 2200
    root = Fraction(math.isqrt(math.floor(scaled)))
    if root * root != scaled:
        root += Fraction(1, 2)  # between two integers, as the exact root is
    return round_fraction(root / Fraction(2) ** 2200, dtype, mode)


#: Operation -> number of operands, and function of the exact result; for ``sqrt``, of its square.
EXACT: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, operator.add), "sub": (2, operator.sub), "mul": (2, operator.mul), "div": (2, operator.truediv),
    "fma": (3, lambda a, b, c: a * b + c), "mad": (3, lambda a, b, c: a * b + c), "rcp": (1, lambda a: 1 / a),
    "sqrt": (1, lambda a: a),
}  # fmt: skip
#: Operation, type and rounding mode; halves have fewer operations, rounded to nearest only.
ROUNDED = [(name, kind, mode) for name in EXACT for kind in ("f32", "f64") for mode in ROUNDINGS]
ROUNDED += [(name, "f16", "rn") for name in ("add", "sub", "mul", "fma")]


def _list_operands(name: str, dtype: np.dtype[Any]) -> list[tuple[float, ...]]:
    """List rows of finite operands with a finite exact result; of three operands, every fifth row, to save time."""
    count = EXACT[name][0]
    values = [x for x in list_values(dtype, 20 if count < 3 else 4) if math.isfinite(x)]
    rows = list(product(values, repeat=count))
    if count == 3:  # add sums that cancel except for the product's last bits
        with np.errstate(all="ignore"):
            rows += [(a, b, -float(dtype.type(a) * dtype.type(b))) for a, b, _ in rows]
        rows = [row for row in rows if math.isfinite(row[2])][::5]
    if name in ("div", "rcp"):
        return [row for row in rows if row[-1] != 0]
    return [row for row in rows if row[0] >= 0] if name == "sqrt" else rows


@pytest.mark.parametrize(("name", "kind", "mode"), ROUNDED)
def test_results_round_once_in_each_mode(name: str, kind: str, mode: str) -> None:
    dtype, exact, rows = DTYPES[kind], EXACT[name][1], _list_operands(name, DTYPES[kind])
    for start in range(0, len(rows), 1024):
        part = rows[start : start + 1024]
        operands = [np.array(column).astype(dtype) for column in zip(*part, strict=True)]
        got = evaluate(f"{name}.{mode}.{kind}", operands, dtype)
        for row, result in zip(part, got, strict=True):
            value = exact(*map(Fraction, row))
            if value:
                expected = _root(value, dtype, mode) if name == "sqrt" else round_fraction(value, dtype, mode)
                assert (float(result), math.copysign(1, result)) == (expected, 1 if value > 0 else -1), row
            else:
                assert result == 0
                assert math.copysign(1, result) == _sign_of_zero(name, mode, *row), row


def _sign_of_zero(name: str, mode: str, a: float, b: float = 1.0, c: float | None = None) -> float:
    """Return the sign of a zero result by IEEE 754, 6.3: the product of signs, or minus for a sum rounded down."""
    first, second = math.copysign(1, a), math.copysign(1, b)
    if name in ("add", "sub"):
        second = -second if name == "sub" else second
    elif c is None:
        return first * second
    else:
        first, second = first * second, math.copysign(1, c)
    return first if first == second else (-1.0 if mode == "rm" else 1.0)


TABLE: list[tuple[str, list[float], float]] = [
    ("min.f32", [NAN, 1.0], 1.0), ("max.f32", [1.0, NAN], 1.0), ("min.NaN.f32", [NAN, 1.0], NAN),
    ("max.NaN.f32", [1.0, NAN], NAN), ("min.f32", [NAN, NAN], NAN), ("min.f32", [0.0, -0.0], -0.0),
    ("max.f32", [-0.0, 0.0], 0.0), ("min.f64", [-INF, 3.0], -INF), ("abs.f32", [-0.0], 0.0),
    ("neg.f32", [0.0], -0.0), ("add.sat.f32", [0.75, 0.75], 1.0), ("add.sat.f32", [-0.75, 0.25], 0.0),
    ("mul.sat.f32", [NAN, 1.0], 0.0), ("add.ftz.f32", [1e-40, 0.0], 0.0), ("mul.ftz.f32", [1e-30, 1e-15], 0.0),
    ("add.ftz.f32", [TINY, 0.0], TINY), ("neg.ftz.f32", [TINY], -TINY), ("abs.ftz.f32", [BELOW_TINY], 0.0),
    ("mul.f32", [1e-30, -1e-15], -1e-45), ("neg.ftz.f32", [1e-40], -0.0), ("div.rn.f32", [1.0, 0.0], INF),
    ("div.approx.ftz.f32", [1.0, 4.0], 0.25), ("rcp.rn.f64", [-0.0], -INF),
    *(
        (f"{name}.{mode}.{kind}", [*front, zero], sign)
        for name, front in (("rcp", []), ("div", [1.0]))
        for mode in ("rz", "rm", "rp")
        for kind in ("f32", "f64")
        for zero, sign in ((0.0, INF), (-0.0, -INF))
    ),
    ("sqrt.rn.f32", [2.0], math.sqrt(2.0)), ("sqrt.rn.f32", [-1.0], NAN), ("rsqrt.approx.f32", [4.0], 0.5),
    ("ex2.approx.f32", [3.0], 8.0), ("lg2.approx.f32", [8.0], 3.0), ("copysign.f32", [-1.0, 3.0], -3.0),
    ("min.xorsign.abs.f32", [-0.0, 3.0], -0.0), ("max.xorsign.abs.f32", [-2.0, -3.0], 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "operands", "expected"), TABLE)
def test_special_values_as_in_the_ptx_isa(instruction: str, operands: list[float], expected: float) -> None:
    dtype = DTYPES[instruction.rsplit(".", 1)[1]]
    got = evaluate(instruction, [np.array([x], dtype) for x in operands], dtype)
    assert_same(got, np.array([expected], dtype))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_floats_round_to_integers(source: str, target: str, rounding: str) -> None:
    bits, signed = int(target[1:]), target[0] == "s"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near = [float(edge) + step for edge in (low, high) for step in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    with np.errstate(over="ignore"):
        values = np.array([*list_values(DTYPES[source], 20), *near, 2.5, -0.5, 0.5, 1.5, 3.999]).astype(DTYPES[source])
    got = evaluate(f"cvt.{rounding}i.{target}.{source}", [values], f"{target[0].replace('s', 'i')}{bits // 8}")
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        if math.isnan(value):  # the top bit alone, or 0
            top_bit = low if signed else 2 ** (bits - 1)
            expected = top_bit if bits == 64 or source == "f64" else 0
        elif math.isinf(value):
            expected = high if value > 0 else low
        else:
            expected = max(low, min(high, ROUNDINGS[rounding](Fraction(value))))
        assert result == expected, value


_TO_FLOAT = [(source, target) for source in ("s32", "u32", "s64", "u64") for target in DTYPES]
_TO_FLOAT += [("f32", "f16"), ("f64", "f16"), ("f64", "f32")]


@pytest.mark.parametrize(("source", "target"), _TO_FLOAT)
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_numbers_round_to_floats(source: str, target: str, rounding: str) -> None:
    dtype = DTYPES[target]
    if source[0] == "f":
        values: Array = np.array(list_values(DTYPES[source], 60), DTYPES[source])
    else:
        bits = int(source[1:])
        low = -(2 ** (bits - 1)) if source[0] == "s" else 0
        # limits of the types, ties of halves and singles, and their neighbours
        numbers = [low, low + 1, low + 2**bits - 1, 0, 1, 2**24 + 1, 2**24 - 1, 2049, 2051, 65519, 65520, 2**31 - 65]
        values = np.array(numbers, f"{source[0].replace('s', 'i')}{bits // 8}")
    got = evaluate(f"cvt.{rounding}.{target}.{source}", [values], dtype)
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        if not math.isfinite(value):
            assert result == value or math.isnan(value)
            continue
        assert result == round_fraction(Fraction(value), dtype, rounding), value


#: Conversion, dtypes of its operand and its result, operands, and results.
CONVERSIONS = [
    ("cvt.u32.u64", "u8", "u4", [2**32 + 5, 2**64 - 1], [5, 2**32 - 1]),
    ("cvt.s64.s32", "i4", "i8", [-5, 2**31 - 1], [-5, 2**31 - 1]),
    ("cvt.u64.s32", "i4", "u8", [-5], [2**64 - 5]),
    ("cvt.s32.s8", "i4", "i4", [0x180, 0x7F], [-128, 127]),
    ("cvt.u16.u8", "u2", "u2", [0x1FF], [0xFF]),
    ("cvt.sat.s8.s32", "i4", "i2", [-1000, 1000, 5], [-128, 127, 5]),
    ("cvt.sat.u8.s32", "i4", "u2", [-1000, 1000, 5], [0, 255, 5]),
    ("cvt.sat.u32.s64", "i8", "u4", [-1, 2**40, 7], [0, 2**32 - 1, 7]),
    ("cvt.rmi.f32.f32", "f4", "f4", [-0.5, 2.7], [-1.0, 2.0]),
    ("cvt.sat.f32.f32", "f4", "f4", [-0.5, 2.7, NAN, 0.25], [0.0, 1.0, 0.0, 0.25]),
    ("cvt.ftz.f32.f32", "f4", "f4", [1e-40, 1.0], [0.0, 1.0]),
    ("cvt.rn.ftz.f32.s32", "i4", "f4", [-7], [-7.0]),  # this and the next two as on an H200
    ("cvt.ftz.f32.f16", "f2", "f4", [2.0**-24], [2.0**-24]),
    ("cvt.rn.ftz.f16.f32", "f4", "f2", [2.0**-24, 1e-40], [2.0**-24, 0.0]),
    ("cvt.f64.f32", "f4", "f8", [0.1], [float(np.float32(0.1))]),
    ("cvt.f32.f16", "f2", "f4", [0.1], [float(np.float16(0.1))]),
]


@pytest.mark.parametrize(("instruction", "source", "target", "values", "expected"), CONVERSIONS)
def test_conversions_extend_saturate_round_and_flush(
    instruction: str, source: str, target: str, values: list[float], expected: list[float]
) -> None:
    got = evaluate(instruction, [np.array(values, source)], target)
    assert got.tolist() == expected


KINDS: dict[str, Callable[[float], bool]] = {
    "finite": math.isfinite, "infinite": math.isinf, "number": lambda x: not math.isnan(x), "notanumber": math.isnan,
    "normal": lambda x: math.isfinite(x) and abs(x) >= 2.0**-126, "subnormal": lambda x: 0 < abs(x) < 2.0**-126,
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_testp_tells_kinds_of_numbers(name: str) -> None:
    values = [0.0, 1.0, -INF, NAN, 1e-40, -1e-40, 3e38, TINY, -TINY, BELOW_TINY]
    got = evaluate(f"testp.{name}.f32", [np.array(values, np.float32)], bool)
    assert got.tolist() == [KINDS[name](x) for x in values]
