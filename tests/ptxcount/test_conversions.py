"""``cvt`` to halves, tf32 and narrow floats against exact arithmetic: roundings, ``.relu`` and ``.satfinite``."""

from bisect import bisect_right
from fractions import Fraction
from math import copysign, inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from ptxcount.util.errors import UnsupportedInstructionError
from tests.ptxcount.exact_floats import list_values
from tests.ptxcount.small_floats import NARROW, ml_dtypes
from tests.ptxcount.snippets import evaluate

HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
#: Type -> its finite numbers from zero on, indexed by code, and the number that would follow.
GRIDS = {name: [*np.arange(code, dtype=np.uint16).view(HALVES[name]).astype(float).tolist(), beyond]
         for name, code, beyond in (("f16", 0x7C00, 2.0**16), ("bf16", 0x7F80, 2.0**128))}  # fmt: skip
#: Ties of bfloat16 and tf32, and numbers just above one.
TIES = [1 + 2**-8, 1 + 3 * 2**-8, -1 - 3 * 2**-8, 1 + 2**-8 + 2**-40, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20]
F32 = np.array([*list_values(np.dtype("f4"), 250), *TIES, 3.39e38], np.float32)
CLAMPS = ["", ".relu", ".satfinite", ".relu.satfinite", ".satfinite.relu"]


def _round(number: Any, grid: list[float], rounding: str, clamps: str = "", random: Any = 0) -> float:
    """Round an integer or a float to a number of the grid; ``random``, below 1, is for the rounding ``rs``."""
    if isnan(number):
        return nan
    if ".relu" in clamps and number <= 0:
        return 0.0
    size, last = abs(number), len(grid) - 1  # the last number of the grid stands for infinity
    code = last if size >= grid[last] else bisect_right(grid, size) - 1
    if code < last:
        below, above = Fraction(grid[code]), Fraction(grid[code + 1])
        part = (Fraction(size) - below) / (above - below)
        code += {
            "rn": part > Fraction(1, 2) or (part == Fraction(1, 2) and code % 2 == 1), "rz": False,
            "rm": number < 0 < part, "rp": number > 0 and part > 0, "rs": part + random >= 1,
        }[rounding]  # fmt: skip
    is_towards_zero = rounding in ("rz", "rm" if number > 0 else "rp")
    if code == last and (".satfinite" in clamps or (is_towards_zero and size != inf)):
        code -= 1  # the greatest finite number
    return copysign(inf if code == last else grid[code], number)


def _assert_same_bits(got: Any, half: str, expected: list[float]) -> None:
    """Compare results with numbers, as bits; a NaN must be 0x7FFF."""
    wanted = np.array(expected, HALVES[half])
    different = (got.view(np.uint16) != wanted.view(np.uint16)) & ~(np.isnan(wanted) & (got == 0x7FFF))
    assert not different.any(), (got[different][:4], wanted[different][:4])


@pytest.mark.parametrize("clamps", CLAMPS)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("rounding", ["rn", "rz"])
def test_halves_are_rounded_and_clamped(rounding: str, half: str, clamps: str) -> None:
    expected = [_round(float(number), GRIDS[half], rounding, clamps) for number in F32]
    _assert_same_bits(evaluate(f"cvt.{rounding}{clamps}.{half}.f32", [F32], np.uint16), half, expected)
    words = evaluate(f"cvt.{rounding}{clamps}.{half}x2.f32", [F32, F32[::-1].copy()], np.uint32)
    _assert_same_bits((words >> 16).astype(np.uint16), half, expected)
    _assert_same_bits(words.astype(np.uint16), half, expected[::-1])


#: Powers of two and ties of bfloat16, which has 8 significant bits, with neighbours; and the limit of s64.
_INTEGERS = [2**62 + d for d in (-1, 0, 1)] + [2**54 + 2**46 + d for d in (-1, 0, 1)] + [0, 1, 255, 257, 259, 2**63 - 1]


@pytest.mark.parametrize("source", ["f32", "f64", "s16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_each_mode_rounds_once_to_bfloat16(rounding: str, source: str) -> None:
    if source[0] == "f":
        dtype = np.dtype(f"f{int(source[1:]) // 8}")
        values = np.array([*list_values(dtype, 250), *TIES], dtype)
    else:
        info = np.iinfo(f"{'i' if source[0] == 's' else 'u'}{int(source[1:]) // 8}")
        whole = [sign * number for number in _INTEGERS for sign in (1, -1)]
        values = np.array([number for number in whole if info.min <= number <= info.max], info.dtype)
    got = evaluate(f"cvt.{rounding}.bf16.{source}", [values], np.uint16)
    _assert_same_bits(got, "bf16", [_round(number, GRIDS["bf16"], rounding) for number in values.tolist()])


_HALF_PAIRS = [(*pair, mode) for pair in (("f16", "bf16"), ("bf16", "f16")) for mode in ("", "rn", "rz", "rm", "rp")]


@pytest.mark.parametrize(("half", "source", "rounding"), [*_HALF_PAIRS, ("f16", "f16", ""), ("bf16", "bf16", "")])
def test_halves_convert_to_each_other(half: str, source: str, rounding: str) -> None:
    """Without a mode, ptxas rounds to nearest."""
    values = np.arange(0, 1 << 16, 67).astype(np.uint16)  # a sample of all codes
    opcode = f"cvt.{rounding}.{half}.{source}" if rounding else f"cvt.{half}.{source}"
    got = evaluate(f"{opcode} {{d}}, {{a}}", [values], np.uint16)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = values.view(HALVES[source]).astype(float).tolist()
    _assert_same_bits(got, half, [_round(number, GRIDS[half], rounding or "rn") for number in numbers])


@pytest.mark.parametrize("clamps", CLAMPS)
@pytest.mark.parametrize("rounding", ["rn", "rz", "rna"])
def test_tf32_is_rounded_and_clamped(rounding: str, clamps: str) -> None:
    numbers = F32[~np.isnan(F32)]
    bits, step = numbers.view(np.uint32).astype(np.int64), 1 << 13  # tf32 drops 13 bits
    rest, kept, half = bits % step, bits // step * step, step // 2
    up = {"rn": (rest > half) | ((rest == half) & (kept & step != 0)), "rz": rest < 0, "rna": rest >= half}
    kept = kept + step * up[rounding]
    if "relu" in clamps:
        kept = np.where(numbers > 0, kept, 0)
    if "satfinite" in clamps:
        kept = np.where(kept & 0x7FFFFFFF == 0x7F800000, kept - step, kept)  # infinity becomes the largest number
    got = evaluate(f"cvt.{rounding}{clamps}.tf32.f32", [numbers], np.uint32)
    assert got.tolist() == kept.tolist()


@pytest.mark.parametrize("clamps", CLAMPS)
@pytest.mark.parametrize(("half", "bits"), [("f16", 13), ("bf16", 16)])
def test_random_bits_round_by_their_carry(half: str, bits: int, clamps: str) -> None:
    """``rs`` rounds away from zero if the sum of random bits and lost mantissa bits has a carry.

    Only numbers with a normal result are tested. A third each has random bits of zeros, of a generator, and of ones.
    """
    numbers = np.append(F32, np.array([65519, -65519, 3.39e38], np.float32))
    sizes = np.abs(numbers)
    is_normal = (sizes == 0) | ((sizes >= 2.0**-14) & (sizes < 2.0**16)) | ~np.isfinite(numbers)
    numbers = np.tile(numbers[is_normal | (half == "bf16")], 3)
    words = np.random.default_rng(7).integers(0, 2**32, len(numbers), np.uint32)
    words[: len(words) // 3], words[-(len(words) // 3) :] = 0, 0xFFFFFFFF
    got = evaluate(f"cvt.rs{clamps}.{half}x2.f32", [numbers, numbers, words], np.uint32)
    for shift in (16, 0):
        parts = [Fraction(int(word) >> shift & (1 << bits) - 1, 1 << bits) for word in words]
        expected = [
            _round(float(number), GRIDS[half], "rs", clamps, part) for number, part in zip(numbers, parts, strict=True)
        ]
        _assert_same_bits((got >> shift).astype(np.uint16), half, expected)


@pytest.mark.parametrize(
    ("clamps", "number", "is_refused"),
    [
        ("", 1e-5, True), ("", -1e-5, True), (".relu", -1e-5, False), ("", 2.0**-20, False), ("", 0.0, False),
        ("", 65519.0, False), ("", 2.0**16, True), (".satfinite", 1e9, False),
    ],
)  # fmt: skip
def test_undefined_random_bits_are_refused(clamps: str, number: float, is_refused: bool) -> None:
    """``rs`` refuses sizes below normal f16 or from 2**16 on, unless all random bits give the same result."""
    operands = [np.array([number], np.float32), np.zeros(1, np.float32), np.zeros(1, np.uint32)]
    form = f"cvt.rs{clamps}.f16x2.f32 {{d}}, {{a}}, {{b}}, {{c}}"
    if is_refused:
        remedy = "scale it, or add .satfinite;" if number >= 2**16 else "scale it;"
        with pytest.raises(UnsupportedInstructionError, match=f"is not in the range of normal f16, .*; {remedy}"):
            evaluate(form, operands, np.uint32)
    else:
        expected = _round(number, GRIDS["f16"], "rs", clamps)
        _assert_same_bits((evaluate(form, operands, np.uint32) >> 16).astype(np.uint16), "f16", [expected])


RNG = np.random.default_rng(3)


def _run(name: str, first: Any, second: Any, words: Any, clamps: str = ".satfinite") -> Any:
    """Convert to four narrow floats: the first number is the outer two, the second number the inner two."""
    result = np.uint16 if name == "e2m1" else np.uint32
    form = f"cvt.rs{clamps}.{name}x4.f32 {{d}}, {{{{{{a}}, {{b}}, {{b}}, {{a}}}}}}, {{c}}"
    return evaluate(form, [np.asarray(first, np.float32), np.asarray(second, np.float32), words], result)


def _pack(name: str, first: Any, second: Any) -> Any:
    bits = 4 if name == "e2m1" else 8
    return first << 3 * bits | second << 2 * bits | second << bits | first


def _list_finite(name: str) -> tuple[Any, Any]:
    dtype, bits = NARROW[name]
    codes = np.arange(1 << bits, dtype=np.uint8)
    numbers = codes.view(dtype).astype(np.float32)
    return numbers[np.isfinite(numbers)], codes[np.isfinite(numbers)].astype(np.uint32)


@pytest.mark.parametrize("name", NARROW)
def test_random_bits_do_not_change_exact_or_clamped_numbers(name: str) -> None:
    numbers, codes = _list_finite(name)
    greatest, nan = numbers.argmax(), 2 ** (NARROW[name][1] - 1) - 1  # all bits but the sign
    beyond = [numbers[greatest] * 1.01, 1e9, np.inf, np.nan]
    numbers = np.append(numbers, [*beyond, *np.negative(beyond)]).astype(np.float32)
    limit = codes[greatest]
    negative = limit | nan + 1  # the sign is the bit above those of NaN
    codes = np.append(codes, [limit, limit, limit, nan, negative, negative, negative, nan]).astype(np.uint32)
    words = RNG.integers(1, 2**32, len(numbers), np.uint32)
    np.testing.assert_array_equal(_run(name, numbers, numbers[::-1].copy(), words), _pack(name, codes, codes[::-1]))


@pytest.mark.parametrize("name", NARROW)
def test_zero_bits_round_towards_zero(name: str) -> None:
    numbers, codes = _list_finite(name)
    order = np.argsort(numbers[: len(numbers) // 2])  # the first half is not negative
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
    """0.53, at one of four places, is refused if a random bit of its place is set; otherwise, it is rounded to 0.5.

    ``upper`` has the random bits of places 0 and 1, and the other bits are those of places 2 and 3. ``own & -own`` is
    the lowest bit of the place.
    """
    letters = ["{b}"] * 4
    letters[place] = "{a}"
    form = f"cvt.rs.satfinite.{name}x4.f32 {{d}}, {{{{{', '.join(letters)}}}}}, {{c}}"
    dtype, bits = NARROW[name][0], 4 if name == "e2m1" else 8
    own = upper if place < 2 else ~upper & 0xFFFFFFFF

    def convert(word: int) -> Any:
        operands = [np.array([0.53], np.float32), np.zeros(1, np.float32), np.array([word], np.uint32)]
        return evaluate(form, operands, np.uint32 if bits == 8 else np.uint16)

    with pytest.raises(UnsupportedInstructionError, match=r"0\.53 is not exact .*; pass zero bits or exact numbers"):
        convert(own & -own)
    assert convert(~own & 0xFFFFFFFF) == int(np.array([0.5], dtype).view(np.uint8)[0]) << (3 - place) * bits
