"""bfloat16 against ml_dtypes; test_conversions.py has roundings to bfloat16 and tf32."""

from typing import Any

import numpy as np
import pytest

from ptxcount.lanes.warps import Array
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import evaluate

BFLOAT = np.dtype(ml_dtypes.bfloat16)


def _floats(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=1024).astype(np.float32) * np.float32(2) ** rng.integers(-60, 60, 1024).astype(np.float32)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.39e38, 1e-40, 1e-45]
    special += [1 + 2**-8, 1 + 3 * 2**-8, -1 - 3 * 2**-8]  # ties of bfloat16
    values[: len(special)] = np.random.default_rng(seed + 1).permutation(special)
    return values


@pytest.mark.parametrize(("name", "count", "exact"), [
    ("add.rn", 2, np.add), ("sub.rn", 2, np.subtract), ("mul.rn", 2, np.multiply), ("min", 2, np.fmin),
    ("max", 2, np.fmax), ("min.NaN", 2, np.minimum), ("max.NaN", 2, np.maximum), ("abs", 1, np.abs),
    ("fma.rn.relu", 3, lambda a, b, c: np.where(a * b + c < 0, 0, a * b + c)),
])  # fmt: skip
@pytest.mark.parametrize("pairs", [False, True])
def test_arithmetic_as_in_numpy(name: str, count: int, exact: Any, pairs: bool) -> None:
    operands = [_floats(seed) for seed in range(2 * count)]  # of lower halves, then of upper halves
    if count == 3:  # small integers, whose results are exact
        operands = [np.random.default_rng(seed).integers(-99, 99, 1024).astype(np.float32) for seed in range(6)]
    narrow = [operand.astype(BFLOAT) for operand in operands]
    bits = [number.view(np.uint16) for number in narrow]
    words: list[Array] = [*bits[:count]]
    if pairs:
        words = [low | (high.astype(np.uint32) << 16) for low, high in zip(bits[:count], bits[count:], strict=True)]
    got = evaluate(f"{name}.bf16x2", words, np.uint32) if pairs else evaluate(f"{name}.bf16", words, np.uint16)
    with np.errstate(all="ignore"):
        for half in (0, 1) if pairs else (0,):
            wide = [number.astype(np.float64) for number in narrow[half * count :][:count]]
            result = (got >> np.array(16 * half, got.dtype)).astype(np.uint16)
            zero = (result & 0x7FFF == 0) & (exact(*wide) == 0)  # either zero is a valid `fmin`
            numbers = np.where(zero, 0, exact(*wide)).astype(np.float32)
            expected = np.where(np.isnan(numbers), 0x7FFF, numbers.astype(BFLOAT).view(np.uint16))
            np.testing.assert_array_equal(np.where(zero, 0, result), expected)


def test_powers_of_two_are_flushed() -> None:
    """``ex2`` of bfloat16 flushes subnormal results, and only these, as on an H200."""
    bits = np.array([-126, -126.5, -130], BFLOAT).view(np.uint16)
    assert evaluate("ex2.approx.ftz.bf16", [bits], np.uint16).view(BFLOAT).tolist() == [2.0**-126, 0, 0]


@pytest.mark.parametrize("target", ["f32", "f64", "s8", "u8", "s32", "u64"])
def test_bfloat_converts_to_other_types(target: str) -> None:
    numbers = np.append(_floats(11)[:-4], [-300, 255.5, 2.5e9, -0.75])  # `evaluate` takes at most 1024
    bits = numbers.astype(BFLOAT).view(np.uint16)
    exact = bits.view(BFLOAT).astype(np.float64)
    if target[0] == "f":
        expected = exact.astype(f"f{int(target[1:]) // 8}")
        number = ~np.isnan(expected)
        got = evaluate(f"cvt.{target}.bf16", [bits], expected.dtype)
        assert (np.isnan(got) == ~number).all()
        np.testing.assert_array_equal(got[number].view(f"u{got.itemsize}"), expected[number].view(f"u{got.itemsize}"))
    else:
        info = np.iinfo(target.replace("s", "int").replace("u", "uint"))
        converted_nan = 2**63 if target == "u64" else 0  # for 64 bits, only the top bit is set: see `convert`
        huge = 2.0**70  # beyond all integer types, but finite
        got = evaluate(f"cvt.rzi.{target}.bf16", [bits], info.dtype)
        clamped = [converted_nan if np.isnan(x) else int(np.clip(np.trunc(x), -huge, huge)) for x in exact]
        assert got.tolist() == [max(info.min, min(info.max, value)) for value in clamped]
