"""Arithmetic and conversions from sm_100 on against fractions, NumPy and ml_dtypes; parameters of PTX 9.x."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.isa.ptx_releases import explain_release
from ptxcount.lanes.warps import Array
from tests.ptxcount.exact_floats import assert_same, list_values, multiply_add
from tests.ptxcount.small_floats import NARROW, ml_dtypes
from tests.ptxcount.snippets import evaluate, list_registers, module

F32 = np.dtype("f4")
#: Single-precision numbers, among them ties, subnormals, NaN, infinities and numbers beyond narrow formats.
NUMBERS = np.concatenate([np.array(list_values(F32, 300), F32), np.arange(-640, 640, dtype=F32) / 64])[:1024]
PARTNERS = np.roll(NUMBERS, 5)


@pytest.mark.parametrize("absolute", ["", ".abs"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extreme_of_three_is_nested(name: str, nan: str, absolute: str) -> None:
    operands = [NUMBERS, PARTNERS, np.roll(NUMBERS, 11)]
    got = evaluate(f"{name}{nan}{absolute}.f32", operands, F32)
    numpy_name = f"{name}imum" if nan else f"f{name}"
    values = [np.abs(operand) if absolute else operand for operand in operands]
    expected = reduce(getattr(np, numpy_name), values)
    is_zero = expected == 0  # of either sign
    assert (got[is_zero] == 0).all()
    assert_same(got[~is_zero], expected[~is_zero])


@pytest.mark.parametrize("modifiers", ["min", "max", "min.abs", "max.abs", "min.NaN", "max.abs.NaN"])
def test_redux_of_floats_gives_the_extreme(modifiers: str) -> None:
    values = np.random.default_rng(1).normal(size=(8, 32)).astype(F32)
    values[2, 3], values[3] = np.nan, np.nan  # a lane of one warp, and all lanes of another
    got = evaluate(f"redux.sync.{modifiers}.f32 {{d}}, {{a}}, -1", [values.reshape(-1)], F32).reshape(8, 32)
    name, compared = modifiers[:3], np.abs(values) if "abs" in modifiers else values
    expected = reduce(getattr(np, f"{name}imum" if "NaN" in modifiers else f"f{name}"), compared.T)
    assert_same(got, np.repeat(expected[:, None], 32, axis=1))


#: Operation on a, b and c -> the two factors and the summand of an equal ``fma``.
_SUMS: dict[str, Callable[[float, float, float], tuple[float, float, float]]] = {
    "add": lambda a, b, c: (a, 1.0, b),
    "sub": lambda a, b, c: (a, 1.0, -b),
    "mul": lambda a, b, c: (a, b, -0.0),
    "fma": lambda a, b, c: (a, b, c),
}


def _round_once(name: str, a: float, b: float, c: float) -> float:
    x, y, z = _SUMS[name](a, b, c)
    return float(np.float32(x) * np.float32(y)) if name == "mul" else multiply_add(x, y, z, F32)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_pairs_of_singles_are_independent(name: str) -> None:
    """The upper number of each pair is the lower one of the pair before."""
    columns = [np.roll(NUMBERS, shift) for shift in (0, 7, 19)]
    words = [np.stack([column, np.roll(column, 1)], axis=1).copy().view("u8")[:, 0] for column in columns]
    operands = words if name == "fma" else words[:2]
    got = evaluate(f"{name}.rn.f32x2", operands, np.uint64).view(F32).reshape(-1, 2)
    with np.errstate(all="ignore"):
        lower = np.array([_round_once(name, *map(float, row)) for row in zip(*columns, strict=True)], F32)
    assert_same(got[:, 0].copy(), lower)
    assert_same(got[:, 1].copy(), np.roll(lower, 1))


@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("name", ["add", "sub", "fma"])
def test_mixed_operands_round_once(name: str, kind: str, dtype: Any) -> None:
    """The last operand is a float, the others are halves."""
    with np.errstate(all="ignore"):
        halves = [np.roll(NUMBERS, shift).astype(dtype) for shift in ((0, 3) if name == "fma" else (0,))]
    got = evaluate(f"{name}.rn.f32.{kind}", [*(half.view(np.uint16) for half in halves), PARTNERS], F32)
    rows = zip(*(half.astype(np.float64).tolist() for half in halves), PARTNERS.tolist(), strict=True)
    with np.errstate(all="ignore"):
        expected = [_round_once(name, *((*row, 0.0) if len(row) == 2 else row)) for row in rows]
    assert_same(got, np.array(expected, F32))


#: Types of one byte.
BYTES = [kind for kind in NARROW if kind != "e2m1"]


def _encode(numbers: Array, kind: str) -> Array:
    """Return the codes of rounded and clamped numbers; NaN becomes the last positive code."""
    dtype, bits = NARROW[kind]
    limit = float(ml_dtypes.finfo(dtype).max)
    with np.errstate(invalid="ignore"):
        codes = np.clip(numbers, -limit, limit).astype(dtype).view(np.uint8)
    return np.where(np.isnan(numbers), 2 ** (bits - 1) - 1, codes)


@pytest.mark.parametrize("kind", NARROW)
def test_singles_round_to_narrow_floats(kind: str) -> None:
    instruction = f"cvt.rn.satfinite.{kind}x2.f32 {{d}}, {{a}}, {{b}}"
    if kind == "e2m1":
        conversion = instruction.replace("{d}", "%q")  # a result of 8 bits fills both bytes of a word
        instruction = f"{{{{ .reg .b8 %q; {conversion}; mov.b16 {{d}}, {{{{%q, %q}}}}; }}}}"
    got = evaluate(instruction, [NUMBERS, PARTNERS], np.uint16)
    bits = 4 if kind == "e2m1" else 8
    for numbers, shift in ((NUMBERS, bits), (PARTNERS, 0)):
        assert (((got >> shift) & (2**bits - 1)) == _encode(numbers, kind)).all()


@pytest.mark.parametrize("kind", BYTES)
def test_narrow_floats_become_their_numbers(kind: str) -> None:
    """The lower byte of the pairs takes all codes in ascending order, the upper byte in descending order."""
    dtype, bits = NARROW[kind]
    codes = np.arange(2**bits)
    values = codes.astype(np.uint8).view(dtype).astype(np.float16)
    got = evaluate(f"cvt.rn.f16x2.{kind}x2", [(codes | codes[::-1] << 8).astype(np.uint16)], np.uint32)
    assert_same((got & 0xFFFF).astype(np.uint16).view(np.float16), values)
    assert_same((got >> 16).astype(np.uint16).view(np.float16), values[::-1].copy())


@pytest.mark.parametrize("kind", ["e2m3", "e3m2"])
def test_narrow_floats_are_scaled(kind: str) -> None:
    """Each number of a pair has its own power of two. That of the upper one is 2**0, whose code is 127."""
    least, one, largest, nan = 0, 127, 254, 255
    scale_codes = [least, 1, 100, one, 128, 200, largest, nan]
    codes, scales = (axis.ravel() for axis in np.meshgrid(np.arange(2**6), scale_codes))
    words = [(codes | codes[::-1] << 8).astype(np.uint16), (scales | one << 8).astype(np.uint16)]
    got = evaluate(f"cvt.rn.scaled::n2::ue8m0.bf16x2.{kind}x2", words, np.uint32)
    values = codes.astype(np.uint8).view(NARROW[kind][0]).astype(np.float32)
    factors = scales.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = [(values * factors).astype(ml_dtypes.bfloat16), values[::-1].astype(ml_dtypes.bfloat16)]
    for shift, numbers in zip((0, 16), expected, strict=True):
        half = (got >> shift & 0xFFFF).astype(np.uint16).view(ml_dtypes.bfloat16)
        assert_same(half.astype(F32), numbers.astype(F32))


#: Bits of single-precision numbers. The next larger number has the next larger bits.
_LEAST, _ONE, _TWO, _LARGEST, _INFINITY, _NAN = (
    int(np.float32(number).view(np.uint32)) for number in (2**-127, 1, 2, np.finfo(F32).max, np.inf, np.nan)
)
_SIGN = 1 << 31


@pytest.mark.parametrize(("rounding", "bits", "expected"), [
    ("rz", _ONE, 127), ("rp", _ONE + 1, 128), ("rz", _SIGN | _TWO - 1, 127), ("rp", _LEAST, 0),
    ("rp", _LEAST + 1, 1), ("rz", _LARGEST, 254), ("rp", _LARGEST, 255), ("rp.satfinite", _LARGEST, 254),
    ("rz", _INFINITY, 255), ("rz.satfinite", _INFINITY, 254), ("rz.satfinite", _NAN, 255), ("rz", 0, 0),
])  # fmt: skip
def test_limits_of_powers_of_two_as_in_cuda(rounding: str, bits: int, expected: int) -> None:
    """Code c of ``ue8m0`` is 2**(c - 127), and 255 is NaN; results at the limits are those of cuda_fp8.hpp."""
    numbers = [np.array([bits], np.uint32).view(F32), np.ones(1, F32)]
    got = evaluate(f"cvt.{rounding}.ue8m0x2.f32", numbers, np.uint16)
    code_of_one = 127
    assert got[0] == expected << 8 | code_of_one  # the second number is in the lower byte


def test_powers_of_two_become_bfloat16_and_return() -> None:
    """In bfloat16, 2**(c - 127) has the exponent c; 2**-127 is subnormal. The second number has the code c - 1."""
    codes = np.arange(1, 255, dtype=np.uint16)
    words = evaluate("cvt.rn.bf16x2.ue8m0x2", [codes << 8 | codes - 1], np.uint32)
    lower = np.where(codes == 1, 0x40, codes - 1 << 7)
    assert words.tolist() == (codes.astype(np.uint32) << 23 | lower).tolist()
    for rounding in ("rz", "rp"):
        returned = evaluate(f"cvt.{rounding}.ue8m0x2.bf16x2", [words], np.uint16)
        assert returned.tolist() == (codes << 8 | codes - 1).tolist()


@pytest.mark.parametrize("load", ["v8.b32", "v4.b64", "v8.f32", "v4.u64", "L1::no_allocate.v8.u32", "nc.v4.b64"])
def test_32_bytes_a_thread_are_a_sector_each(load: str) -> None:
    kind = "f32" if load.endswith("f32") else f"b{load[-2:]}"
    names = list_registers("%w", 4 if kind == "b64" else 8)
    store = load.removeprefix("nc.")
    body = f"""
        ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mul.wide.u32 %rd3, %r0, 32;
        add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
        ld.global.{load} {names}, [%rd1]; st.global.{store} [%rd2], {names};
    """
    arrays = [np.arange(32 * 8, dtype=np.uint32), np.zeros(32 * 8, np.uint32)]
    counters = ptxcount.count(module(body, 2, f".reg .{kind} %w<8>;"), None, 1, 32, arrays)
    assert (arrays[0] == arrays[1]).all()
    assert (counters.loads.requests, counters.loads.sectors, counters.stores.sectors) == (1, 32, 32)


#: Name -> code that reads the first of two parameters of 8 bytes.
PARAMETERS = {
    "entry": "ld.param::entry.u64 %rd3, [p0];",
    "address": "mov.b64 %rd4, p0; ld.param.u64 %rd3, [%rd4];",
    "generic": "mov.b64 %rd4, p0; cvta.param.u64 %rd4, %rd4; ld.u64 %rd3, [%rd4];",
    "32 bits": "mov.b32 %r1, p0; cvt.u64.u32 %rd4, %r1; cvta.param.u64 %rd4, %rd4; ld.u64 %rd3, [%rd4];",
}


@pytest.mark.parametrize("way", PARAMETERS)
@pytest.mark.parametrize("hidden", ["", ".hidden "])
def test_parameter_is_read_by_name_or_address(way: str, hidden: str) -> None:
    text = module(f"ld.param.u64 %rd2, [p1]; {PARAMETERS[way]} st.global.u64 [%rd2], %rd3;", 2)
    text = text.replace(".param .u64 p0", f"{hidden}.param .u64 p0")
    result = np.zeros(1, np.uint64)
    ptxcount.count(text, None, 1, 1, [np.uint64(77), result])
    assert result[0] == 77
    if way == "address":  # an offset leads out of the parameter
        with pytest.raises(ptxcount.OutOfBoundsError, match="byte 8 of p0 of 8 bytes"):
            ptxcount.count(text.replace("[%rd4]", "[%rd4+8]"), None, 1, 1, [np.uint64(77), result])


#: Names of forms that are refused, by the release that added them.
NEW_FORMS = {
    "9.1": ["multimem.cp.async.bulk.global.shared::cta.bulk_group"],
    "9.2": ["add.u8x4", "add.sat.u16x2", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128",
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob"],
    "9.3": ["clmad.lo.u64", "fabric.submit", "mbarrier.check_layout.b64", "multimem.st.async.b32",
            "cp.async.bulk.weak.global.shared::cta.bulk_group"],
    "9.4": [
        "spcompress.b32", "applypriority.async.bulk.global", "cvt.rn.ue5m3x2.f32", "cvt.rz.satfinite.e4m3x2.f32",
        "ld.proxy::readonly.global.u32", "atom.add.noftz.global.f32", "set.lt.u8x4", "add.rn.e4m3x4.e4m3x4",
        "ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4", "mbarrier.arrive.multicast::cluster::32b.shared::cluster.b64",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.override::global_address.mbarrier::complete_tx::bytes",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::validity::per_16bytes::80",
        "tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32", "tcgen05.mma.cta_group::1.kind::ti16",
        "tcgen05.commit.cta_group::1.sync_restrict::shared::read::mma::a.mbarrier::arrive::one.b64",
    ],
    "9.5": ["sin.approx.ftz.2pi.f32", "fabric.submit.commit_group", "fence.alias.sync_restrict::read.release.sys",
            "cp.async.bulk.wait_group.sync_restrict::proxy::async", "tensormap.query.alloc_class_large.global.b1024"],
}  # fmt: skip


@pytest.mark.parametrize("version", NEW_FORMS)
def test_newer_form_is_refused(version: str) -> None:
    for form in NEW_FORMS[version]:
        message = rf"PTX line \d+: .* a form of PTX {version} that ptxcount does not know"
        with pytest.raises(ptxcount.UnsupportedInstructionError, match=message):
            ptxcount.count(module(f"{form} %r1, %r0;", 0), None, 1, 1, [])
    known_forms = ("ld.volatile.local.u32", "prefetch.global.L1::32B.valid_addr", "cvt.rn.bf16x2.e2m3x2")
    assert not any(map(explain_release, known_forms))


def test_none_is_a_null_pointer() -> None:
    """Triton passes None for scratch memory."""
    body = "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; st.global.u64 [%rd1], %rd2;"
    for null in (None, {"scratch": None}):
        result = np.ones(1, np.uint64)
        ptxcount.count(module(body, 2), None, 1, 1, [result, null])
        assert result[0] == 0


def _pack_halves(numbers: Array, dtype: Any) -> tuple[Array, Array]:
    """Return words with a number in the upper half and the number before it in the lower, and the rounded numbers."""
    with np.errstate(all="ignore"):
        halves = numbers.astype(dtype)
    low = np.roll(halves, 1).view(np.uint16).astype(np.uint32)
    return low | (halves.view(np.uint16).astype(np.uint32) << 16), halves.astype(np.float64)


@pytest.mark.parametrize(("source", "dtype"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("kind", BYTES)
def test_halves_round_to_narrow_floats(kind: str, source: str, dtype: Any) -> None:
    words, numbers = _pack_halves(NUMBERS, dtype)
    got = evaluate(f"cvt.rn.satfinite.{kind}x2.{source}", [words], np.uint16)
    codes = _encode(numbers, kind)
    assert (got == (np.roll(codes, 1) | (codes.astype(np.uint16) << 8))).all()


@pytest.mark.parametrize("scale", [None, 120, 127, 130])
def test_fixed_point_is_the_nearest(scale: int | None) -> None:
    """``s2f6`` holds the nearest 64th of a number over its scale, clamped; NaN becomes the largest number.

    A scale code c is 2**(c - 127). The conversion back multiplies by the scale.
    """
    scaled = "" if scale is None else ".scaled::n2::ue8m0"
    scale_words = [] if scale is None else [np.full(len(NUMBERS), scale | scale << 8, np.uint16)]
    got = evaluate(f"cvt.rn.satfinite{scaled}.s2f6x2.f32", [NUMBERS, PARTNERS, *scale_words], np.uint16)
    factor = 2.0 ** ((scale or 127) - 127)
    for numbers, shift in ((NUMBERS, 8), (PARTNERS, 0)):
        exact = np.where(np.isnan(numbers), np.inf, numbers.astype(np.float64)) / factor * 64
        assert ((got >> shift) & 255 == np.clip(np.rint(exact), -128, 127).astype(np.int8).view(np.uint8)).all()
    back = evaluate(f"cvt.rn{scaled}.bf16x2.s2f6x2", [got, *scale_words], np.uint32)
    expected = ((got & 255).astype(np.uint8).view(np.int8) / 64 * factor).astype(ml_dtypes.bfloat16)
    assert_same((back & 0xFFFF).astype(np.uint16).view(ml_dtypes.bfloat16).astype(F32), expected.astype(F32))
