"""bfloat16 and 8-bit floats against ml_dtypes, which rounds float32 once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import evaluate

Array = npt.NDArray[Any]
BFLOAT = np.dtype(ml_dtypes.bfloat16)


def _floats(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=1024).astype(np.float32) * np.float32(2) ** rng.integers(-60, 60, 1024).astype(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.39e38, 1e-40, 1e-45, 1.00390625, 1.01171875, -1.01171875]
    values[: len(special)] = np.random.default_rng(seed + 1).permutation(special)
    return values


def _same(got: Array, expected: Array) -> None:
    """Assert equal bits; NaN is the canonical one."""
    bits = np.where(np.isnan(expected.astype(np.float32)), 0x7FFF, expected.astype(BFLOAT).view(np.uint16))
    np.testing.assert_array_equal(got, bits)


@pytest.mark.parametrize(("name", "count", "exact"), [
    ("add.rn", 2, np.add), ("sub.rn", 2, np.subtract), ("mul.rn", 2, np.multiply), ("min", 2, np.fmin),
    ("max", 2, np.fmax), ("min.NaN", 2, np.minimum), ("max.NaN", 2, np.maximum), ("abs", 1, np.abs),
    ("fma.rn.relu", 3, lambda a, b, c: np.where(a * b + c < 0, 0, a * b + c)),
])  # fmt: skip
@pytest.mark.parametrize("pairs", [False, True])
def test_arithmetic(name: str, count: int, exact: Any, pairs: bool) -> None:
    """Single and packed operations; fused products have small whole operands."""
    operands = [_floats(seed) for seed in range(2 * count)]
    if count == 3:
        operands = [np.random.default_rng(seed).integers(-99, 99, 1024).astype(np.float32) for seed in range(6)]
    narrow = [operand.astype(BFLOAT) for operand in operands]
    letters = ", ".join(f"{{{letter}}}" for letter in "abc"[:count])
    bits = [number.view(np.uint16) for number in narrow]
    words: list[Array] = [*bits[:count]]
    if pairs:
        words = [low | (high.astype(np.uint32) << 16) for low, high in zip(bits[:count], bits[count:], strict=True)]
    got = evaluate(f"{name}.bf16{'x2' * pairs} {{d}}, {letters}", words, np.uint32 if pairs else np.uint16)
    with np.errstate(all="ignore"):
        for half in range(1 + pairs):
            wide = [number.astype(np.float64) for number in narrow[half * count :][:count]]
            result = (got >> np.array(16 * half, got.dtype)).astype(np.uint16)
            zero = (result & 0x7FFF == 0) & (exact(*wide) == 0)  # either zero is a valid `fmin`
            _same(np.where(zero, 0, result), np.where(zero, 0, exact(*wide)).astype(np.float32))


@pytest.mark.parametrize("relu", ["", ".relu"])
def test_conversions_of_singles(relu: str) -> None:
    """Pairs have their first operand in the upper half; the way back is exact."""
    a, b = _floats(5), _floats(7)
    rectified = [np.where((floats < 0) & bool(relu), np.float32(0), floats) for floats in (a, b)]
    rectified = [np.where(floats == 0, np.abs(floats), floats) if relu else floats for floats in rectified]
    with np.errstate(all="ignore"):
        _same(evaluate(f"cvt.rn{relu}.bf16.f32 {{d}}, {{a}}", [a], np.uint16), rectified[0])
        pair = evaluate(f"cvt.rn{relu}.bf16x2.f32 {{d}}, {{a}}, {{b}}", [a, b], np.uint32)
        _same((pair >> 16).astype(np.uint16), rectified[0])
        _same(pair.astype(np.uint16), rectified[1])
        halves = evaluate(f"cvt.rn{relu}.f16x2.f32 {{d}}, {{a}}, {{b}}", [a, b], np.uint32)
        expected = [floats.astype(np.float16) for floats in rectified]
    for bits, half in zip((halves >> 16, halves), expected, strict=True):
        number = ~np.isnan(half)
        np.testing.assert_array_equal(bits.astype(np.uint16)[number], half.view(np.uint16)[number])
        assert (bits.astype(np.uint16)[~number] == 0x7FFF).all()
    back = evaluate("cvt.f32.bf16 {d}, {a}", [a.astype(BFLOAT).view(np.uint16)], np.float32)
    np.testing.assert_array_equal(back, a.astype(BFLOAT).astype(np.float32))


def test_rounding_towards_zero() -> None:
    """``cvt.rz`` truncates, also beyond the greatest number."""
    a = _floats(9)
    got = evaluate("cvt.rz.bf16.f32 {d}, {a}", [a], np.uint16)
    np.testing.assert_array_equal(got, np.where(np.isnan(a), 0x7FFF, a.view(np.uint32) >> 16))


@pytest.mark.parametrize("target", ["f16", "f64", "s8", "u8", "s32", "u64"])
def test_conversions_to_other_types(target: str) -> None:
    """Halves are rounded once, float64 is exact, integers are truncated and clamped."""
    bits = np.append(_floats(11)[4:], [-300, 255.5, 2.5e9, -0.75]).astype(BFLOAT).view(np.uint16)
    exact = bits.view(BFLOAT).astype(np.float64)
    if target[0] == "f":
        rounding, dtype = (".rn", np.float16) if target == "f16" else ("", np.float64)
        with np.errstate(over="ignore"):
            expected = exact.astype(dtype)
        number = ~np.isnan(expected)
        got = evaluate(f"cvt{rounding}.{target}.bf16 {{d}}, {{a}}", [bits], dtype)
        assert (np.isnan(got) == ~number).all()
        np.testing.assert_array_equal(got[number].view(f"u{got.itemsize}"), expected[number].view(f"u{got.itemsize}"))
    else:
        info = np.iinfo(target.replace("s", "int").replace("u", "uint"))
        unknown = 2**63 if target == "u64" else 0
        got = evaluate(f"cvt.rzi.{target}.bf16 {{d}}, {{a}}", [bits], info.dtype)
        clamped = [unknown if np.isnan(x) else int(np.clip(np.trunc(x), -(2.0**70), 2.0**70)) for x in exact]
        assert got.tolist() == [max(info.min, min(info.max, value)) for value in clamped]


@pytest.mark.parametrize("source", [np.float16, np.float64])
def test_conversions_from_other_floats(source: Any) -> None:
    """float64 is rounded once: bits below a float32 tie break it."""
    values = np.append(np.clip(_floats(13)[12:], -6e4, 6e4), [1.00390625, 1.01171875]).astype(source)
    tie = np.nextafter(values[-2], source(2))
    _same(evaluate(f"cvt.rn.bf16.f{values.itemsize * 8} {{d}}, {{a}}", [values], np.uint16), values.astype(np.float32))
    assert evaluate(f"cvt.rn.bf16.f{values.itemsize * 8} {{d}}, {{a}}", [np.array([tie])], np.uint16) == [0x3F81]


@pytest.mark.parametrize("mode", ["rna", "rn", "rz"])
def test_tf32(mode: str) -> None:
    """``tf32`` keeps ten bits; ties go away from zero, or to even."""
    values = _floats(9)
    values = values[np.isfinite(values) & (np.abs(values) < 1e38) & (np.abs(values) > 1e-30)]
    values[:4] = [1 + 2**-11, 1 + 3 * 2**-11, -1 - 2**-11, 1 + 2**-11 + 2**-20]
    fraction, exponent = np.frexp(values.astype(np.float64))
    scaled = fraction * 2**11
    rounded = {"rna": np.trunc(scaled + np.copysign(0.5, scaled)), "rn": np.rint(scaled), "rz": np.trunc(scaled)}[mode]
    got = evaluate(f"cvt.{mode}.tf32.f32 {{d}}, {{a}}", [values], np.uint32)
    np.testing.assert_array_equal(got.view(np.float32), np.ldexp(rounded, exponent - 11).astype(np.float32))


def test_order_of_vote_suffixes() -> None:
    """``vote.ballot.sync`` is a valid spelling."""
    got = evaluate("vote.ballot.sync.b32 {d}, {a}, -1", [np.arange(64) % 3 == 0], np.uint32)
    assert got.tolist() == [
        sum(1 << i for i in range(32) if (first + i) % 3 == 0) for first in (0, 32) for _ in range(32)
    ]


@pytest.mark.parametrize("kind", ["s32", "u32", "s16"])
def test_conversions_of_integers(kind: str) -> None:
    """Integers are rounded once, to even."""
    dtype = np.dtype(("i" if kind[0] == "s" else "u") + str(int(kind[1:]) // 8))
    values = np.random.default_rng(4).integers(0, 2**32, 1024, dtype=np.uint32).astype(f"u{dtype.itemsize}").view(dtype)
    values[:512] >>= np.random.default_rng(5).integers(0, 8 * dtype.itemsize, 512).astype(dtype)
    got = evaluate(f"cvt.rn.bf16.{kind} {{d}}, {{a}}", [values], np.uint16)
    fraction, exponent = np.frexp(values.astype(np.float64))
    exact = np.ldexp(np.rint(fraction * 2**8), exponent - 8)
    np.testing.assert_array_equal(got, exact.astype(np.float32).view(np.uint32) >> 16)


@pytest.mark.parametrize(
    ("kind", "dtype", "most"), [("e4m3", ml_dtypes.float8_e4m3fn, 448), ("e5m2", ml_dtypes.float8_e5m2, 57344)]
)
def test_eight_bit_floats(kind: str, dtype: Any, most: int) -> None:
    """Pairs of floats or halves saturate; every code becomes a half."""
    rng = np.random.default_rng(7)
    upper, lower = ((rng.normal(size=1024) * 2.0 ** rng.integers(-12, 18, 1024)).astype(np.float32) for _ in range(2))
    expected = [
        np.clip(numbers, -most, most).astype(dtype).view(np.uint8).astype(np.uint16) for numbers in (lower, upper)
    ]
    got = evaluate(f"cvt.rn.satfinite.{kind}x2.f32 {{d}}, {{a}}, {{b}}", [upper, lower], np.uint16)
    np.testing.assert_array_equal(got, expected[0] | expected[1] << 8)
    halves = np.clip(np.stack([lower, upper], axis=-1), -60000, 60000).astype(np.float16)
    small = np.clip(halves.astype(np.float32), -most, most).astype(dtype).view(np.uint8).astype(np.uint16)
    got = evaluate(f"cvt.rn.satfinite.{kind}x2.f16x2 {{d}}, {{a}}", [halves.view(np.uint32)[:, 0]], np.uint16)
    np.testing.assert_array_equal(got, small[:, 0] | small[:, 1] << 8)
    codes = np.arange(256, dtype=np.uint16)
    got = evaluate(f"cvt.rn.f16x2.{kind}x2 {{d}}, {{a}}", [codes | (codes[::-1] << 8)], np.uint32)
    exact = codes.astype(np.uint8).view(dtype).astype(np.float16)
    np.testing.assert_array_equal(got.view(np.float16).reshape(-1, 2), np.stack([exact, exact[::-1]], axis=-1))
