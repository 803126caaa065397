"""``cvt.rs`` to four narrow floats: results that no random bit changes, and refusals of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxcount.util.errors import UnsupportedInstructionError
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import evaluate

#: Type -> its dtype, bits in a result, and the code of NaN: all bits but the sign.
TYPES: dict[str, tuple[Any, int, int]] = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 0x7F),
    "e5m2": (ml_dtypes.float8_e5m2, 8, 0x7F),
    "e2m3": (ml_dtypes.float6_e2m3fn, 8, 0x1F),
    "e3m2": (ml_dtypes.float6_e3m2fn, 8, 0x1F),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 0x7),
}
RNG = np.random.default_rng(3)


def _run(name: str, first: Any, second: Any, words: Any, clamps: str = ".satfinite") -> Any:
    """Convert to four narrow floats: the first number is the outer two, the second number the inner two."""
    result = np.uint32 if TYPES[name][1] == 8 else np.uint16
    form = f"cvt.rs{clamps}.{name}x4.f32 {{d}}, {{{{{{a}}, {{b}}, {{b}}, {{a}}}}}}, {{c}}"
    return evaluate(form, [np.asarray(first, np.float32), np.asarray(second, np.float32), words], result)


def _pack(name: str, first: Any, second: Any) -> Any:
    bits = TYPES[name][1]
    return first << 3 * bits | second << 2 * bits | second << bits | first


def _list_finite(name: str) -> tuple[Any, Any]:
    dtype = TYPES[name][0]
    codes = np.arange(1 << {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(name, 8), dtype=np.uint8)
    numbers = codes.view(dtype).astype(np.float32)
    return numbers[np.isfinite(numbers)], codes[np.isfinite(numbers)].astype(np.uint32)


@pytest.mark.parametrize("name", TYPES)
def test_representable_numbers_do_not_change(name: str) -> None:
    numbers, codes = _list_finite(name)
    greatest, nan = numbers.argmax(), TYPES[name][2]
    beyond = [numbers[greatest] * 1.01, 1e9, np.inf, np.nan]
    numbers = np.append(numbers, [*beyond, *np.negative(beyond)]).astype(np.float32)
    limit = codes[greatest]
    negative = limit | nan + 1
    codes = np.append(codes, [limit, limit, limit, nan, negative, negative, negative, nan]).astype(np.uint32)
    words = RNG.integers(1, 2**32, len(numbers), np.uint32)
    np.testing.assert_array_equal(_run(name, numbers, numbers[::-1].copy(), words), _pack(name, codes, codes[::-1]))


@pytest.mark.parametrize("name", TYPES)
def test_zero_bits_round_towards_zero(name: str) -> None:
    numbers, codes = _list_finite(name)
    order = np.argsort(numbers[: len(numbers) // 2])
    sizes, codes = numbers[order], codes[order]
    between = sizes[:-1] + (sizes[1:] - sizes[:-1]) * np.float32(0.9375)
    zeros = np.zeros(len(between), np.uint32)
    packed = _pack(name, codes[:-1], codes[:-1])
    np.testing.assert_array_equal(_run(name, between, between, zeros), packed)
    packed = _pack(name, codes[:-1] * 0, codes[:-1])
    np.testing.assert_array_equal(_run(name, -between, between, zeros, ".relu.satfinite"), packed)


@pytest.mark.parametrize(("name", "upper"), [("e4m3", 0xFFFF0000), ("e3m2", 0xFFFF0000), ("e2m1", 0xFF00FF00)])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_inexact_numbers_need_zero_bits(name: str, upper: int, place: int) -> None:
    letters = ["{b}"] * 4
    letters[place] = "{a}"
    form = f"cvt.rs.satfinite.{name}x4.f32 {{d}}, {{{{{', '.join(letters)}}}}}, {{c}}"
    dtype, bits, _ = TYPES[name]
    own = upper if place < 2 else ~upper & 0xFFFFFFFF

    def convert(word: int) -> Any:
        operands = [np.array([0.53], np.float32), np.zeros(1, np.float32), np.array([word], np.uint32)]
        return evaluate(form, operands, np.uint32 if bits == 8 else np.uint16)

    with pytest.raises(UnsupportedInstructionError, match=r"0\.53 is not exact .*; pass zero bits or exact numbers"):
        convert(own & -own)
    assert convert(~own & 0xFFFFFFFF) == int(np.array([0.5], dtype).view(np.uint8)[0]) << (3 - place) * bits
