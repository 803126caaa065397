"""Products of ``tcgen05.mma`` against NumPy, with factors in canonical layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxcount.util.errors import TensorMemoryError, UninitializedReadError, UnsupportedInstructionError
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.tcgen05_kernels import (
    COMMIT,
    FIRST_THREAD,
    WAIT,
    Array,
    Factor,
    describe_product,
    dump,
    fill,
    launch,
    lay_out,
    load_descriptors,
    write_kernel,
)

RNG = np.random.default_rng(5)
#: Types: NumPy's, and codes of the instruction descriptor.
TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 0), "bf16": (ml_dtypes.bfloat16, 1), "tf32": (np.float32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 1), "u8": (np.uint8, 0), "s8": (np.int8, 1),
}  # fmt: skip
#: Kind -> types of factors, types of results with codes, and products of an instruction.
KINDS: dict[str, tuple[tuple[str, ...], dict[str, int], int]] = {
    "f16": (("f16", "bf16"), {"f32": 1}, 16),
    "tf32": (("tf32",), {"f32": 1}, 8),
    "f8f6f4": (("e4m3", "e5m2"), {"f32": 1, "f16": 0}, 32),
    "i8": (("u8", "s8"), {"s32": 2}, 32),
}


def make_factor(outer: int, products: int, name: str) -> Array:
    """Return small integers, whose products every result type holds exactly."""
    low = 0 if name == "u8" else -3
    return RNG.integers(low, 4, (outer, products)).astype(TYPES[name][0])


def find_lanes(rows: int) -> Array:
    """Return lanes of the rows of a block (PTX ISA, layouts D and F)."""
    row = np.arange(rows)
    return row if rows == 128 else row // 16 * 32 + row % 16


def make_code(
    left: Factor, right: Factor, kind: str, shape: int, *, rest: str = "%no", before: str = "", columns: int = 64,
    stationary: str = "",
) -> str:  # fmt: skip
    """Return code of a product by the first thread, and a dump of the result."""
    mma = f"tcgen05.mma{stationary}.cta_group::1.kind::{kind}"
    return (
        f"{before}bar.sync 0;\n{load_descriptors(left, right)}mov.u32 %r7, {shape};\n{FIRST_THREAD}"
        f"@%p {mma} [%d], %a, %b, %r7, {rest};\n{COMMIT.format(group=1)}{WAIT}{dump(columns)}"
    )


def run_product(left: Factor, right: Factor, code: str, columns: int, **options: Any) -> Array:
    """Run a kernel with factors in shared memory; return the words of each lane."""
    image, out = np.concatenate([left.image, right.image]), np.zeros((128, columns), np.uint32)
    launch(write_kernel(code, columns=128, size=len(image)), image, out, **{"unwritten": "off", **options})
    return out


def decode(words: Array, result: str) -> Array:
    """Return the numbers of a result; f16 uses the lower halves."""
    if result == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view({"f32": np.float32, "s32": np.int32}[result]).astype(np.float64)


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(
    ("kind", "left_type", "right_type", "result"),
    [(kind, a, b, d) for kind, (types, results, _) in KINDS.items() for a in types for b in types for d in results],
)
def test_types(kind: str, left_type: str, right_type: str, result: str, rows: int) -> None:
    """Pairs of types, signs and an accumulated result are covered."""
    results, products = KINDS[kind][1:]
    a, b = make_factor(rows, products, left_type), make_factor(32, products, right_type)
    left, right = lay_out(a, "32", mn_major=False), lay_out(b, "32", mn_major=False)
    codes = (TYPES[left_type][1], TYPES[right_type][1], results[result])
    shape = describe_product(rows, 32, codes, negate=0 if kind == "i8" else 1)
    out = run_product(left, right, make_code(left, right, kind, shape, columns=32), 32)
    expected = (-1 if kind != "i8" else 1) * (a.astype(np.float64) @ b.astype(np.float64).T)
    np.testing.assert_array_equal(decode(out[find_lanes(rows)], result), expected)


@pytest.mark.parametrize("swizzle", ["none", "32", "64", "128"])
@pytest.mark.parametrize("majors", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("kind", ["f16", "f8f6f4"])
def test_layouts(kind: str, majors: tuple[bool, bool], swizzle: str) -> None:
    """Orders and swizzles are covered; two instructions walk along a row of 64 or 128 bytes."""
    name, products = KINDS[kind][0][0], KINDS[kind][2]
    a, b = make_factor(128, products, name), make_factor(128, products, name)
    left, right = (lay_out(m, swizzle, mn_major=major) for m, major in zip((a, b), majors, strict=True))
    shape = describe_product(128, 128, (0, 0, 1), turned=majors[0] | majors[1] << 1)
    out = run_product(left, right, make_code(left, right, kind, shape, columns=128), 128)
    np.testing.assert_array_equal(decode(out, "f32"), a.astype(np.float64) @ b.astype(np.float64).T)


def test_wide_swizzle() -> None:
    """32-bit elements across rows are exchanged in units of 32 bytes."""
    a, b = make_factor(128, 8, "tf32"), make_factor(64, 8, "tf32")
    left, right = (lay_out(m, "128_32", mn_major=True) for m in (a, b))
    shape = describe_product(128, 64, (2, 2, 1), turned=3)
    out = run_product(left, right, make_code(left, right, "tf32", shape), 64)
    np.testing.assert_array_equal(decode(out, "f32"), a.astype(np.float64) @ b.astype(np.float64).T)


def test_steps_along_a_row() -> None:
    """A row of 128 bytes is four instructions at steps of 32 bytes; all but the first accumulate."""
    a, b = make_factor(128, 64, "f16"), make_factor(32, 64, "f16")
    left, right = (lay_out(m, "128", mn_major=False) for m in (a, b))
    mma = "@%p tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %r7, {};\n"
    steps = mma.format("%no") + ("add.u64 %a, %a, 2;\nadd.u64 %b, %b, 2;\n" + mma.format("%yes")) * 3
    code = (
        f"{load_descriptors(left, right)}mov.u32 %r7, {describe_product(128, 32, (0, 0, 1))};\n{FIRST_THREAD}{steps}"
        f"{COMMIT.format(group=1)}{WAIT}{dump(32)}"
    )
    out = run_product(left, right, code, 32)
    np.testing.assert_array_equal(decode(out, "f32"), a.astype(np.float64) @ b.astype(np.float64).T)


_MASK = "mov.u32 %m0, 5;\nmov.u32 %m1, 0;\nmov.u32 %m2, 0;\nmov.u32 %m3, 0x80000000;\n"


@pytest.mark.parametrize(
    ("rest", "scale", "kept"),
    [("%no", 0, []), ("%yes", 1, []), ("%yes, 3", 1 / 8, []), ("{%m0, %m1, %m2, %m3}, %yes", 1, [0, 2, 127])],
)
def test_old_result(rest: str, scale: float, kept: list[int]) -> None:
    """The old result is ignored, added, or scaled; masked lanes stay."""
    a, b = make_factor(128, 16, "f16"), make_factor(64, 16, "f16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, b))
    shape = describe_product(128, 64, (0, 0, 1))
    out = run_product(left, right, make_code(left, right, "f16", shape, rest=rest, before=_MASK + fill(64)), 64)
    words = ((np.arange(128)[:, None] << 16) + np.arange(64)).astype(np.uint32)
    old = words.view(np.float32).astype(np.float64)
    expected = (a.astype(np.float64) @ b.astype(np.float64).T + old * scale).astype(np.float32)
    expected[kept] = old[kept]
    np.testing.assert_array_equal(out.view(np.float32), expected)


@pytest.mark.parametrize("rows", [64, 128])
def test_left_in_tensor_memory(rows: int) -> None:
    """A left factor with two elements a column is in the lanes of the result."""
    b = make_factor(32, 16, "f16")
    right = lay_out(b, "none", mn_major=False)
    words = "\n".join(f"mad.lo.u32 %v{k}, %t, 3, {k + (k * 5 << 16)};" for k in range(8))
    before = (
        f"{words}\nadd.u32 %r5, %d, %quarter;\ntcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+64], "
        "{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};\ntcgen05.wait::st.sync.aligned;\n"
    )
    code = make_code(right, right, "f16", describe_product(rows, 32, (0, 0, 1)), before=before, columns=32)
    code = code.replace("[%d], %a, %b", "[%d], [%d+64], %b")
    out = run_product(right, right, code, 32)
    k = np.arange(8)
    stored = (np.arange(128)[:, None] * 3 + k + (k * 5 << 16)).astype(np.uint32)
    a = stored.view(np.float16)[find_lanes(rows)].astype(np.float64)
    np.testing.assert_allclose(decode(out[find_lanes(rows)], "f32"), a @ b.astype(np.float64).T, rtol=1e-6)


@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (64, 2), (128, 1)])
def test_stationary(rows: int, parts: int) -> None:
    """``.ws`` puts parts of the columns below each other (layouts E and G)."""
    a, b = make_factor(rows, 16, "bf16"), make_factor(64, 16, "bf16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, b))
    columns = 64 // parts
    code = make_code(left, right, "f16", describe_product(rows, 64, (1, 1, 1)), columns=columns, stationary=".ws")
    out = decode(run_product(left, right, code, columns), "f32")
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(np.concatenate(np.split(out, parts), axis=1), expected)


def test_narrow_types() -> None:
    """16 elements of 4 or 6 bits take 16 bytes with padding."""
    for name, bits, code in (("float4_e2m1fn", 4, 5), ("float6_e2m3fn", 6, 3), ("float6_e3m2fn", 6, 4)):
        numbers = np.arange(1 << bits, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float64)
        codes = RNG.integers(0, 1 << bits, (2, 128, 32))
        factors = []
        for matrix, rows in zip(codes, (128, 64), strict=True):
            bit = (matrix[:rows, :, None] >> np.arange(bits)) & 1
            padded = np.zeros((rows, 2, 128), np.uint8)
            padded[:, :, : 16 * bits] = bit.reshape(rows, 2, -1)
            factors.append(
                lay_out(np.packbits(padded, axis=2, bitorder="little").reshape(rows, 32), "32", mn_major=False)
            )
        left, right = factors
        shape = describe_product(128, 64, (code, code, 1))
        out = run_product(left, right, make_code(left, right, "f8f6f4", shape), 64)
        expected = numbers[codes[0]] @ numbers[codes[1, :64]].T
        np.testing.assert_allclose(decode(out, "f32"), expected, rtol=1e-6)


def _run_changed(descriptor: int, shape: int | None = None) -> None:
    """Run a product with flipped bits of the left descriptor; check its result."""
    a = make_factor(128, 16, "f16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, a[:64]))
    left = left._replace(descriptor=left.descriptor ^ descriptor)
    code = make_code(left, right, "f16", describe_product(128, 64, (0, 0, 1)) if shape is None else shape)
    out = run_product(left, right, code, 64)
    np.testing.assert_array_equal(decode(out, "f32"), a.astype(np.float64) @ a[:64].astype(np.float64).T)


@pytest.mark.parametrize(
    ("descriptor", "shape", "error", "text"),
    [
        (1 << 46, None, TensorMemoryError, "bits 46 to 48 of the descriptor .* are 000; 001 is needed"),
        (3 << 61, None, TensorMemoryError, "undefined swizzle 3"),
        (1 << 49 | 2 << 61, None, UnsupportedInstructionError, "base offset"),
        (1 << 52, None, UnsupportedInstructionError, "absolute stride"),
        (0, describe_product(128, 64, (7, 0, 1)), TensorMemoryError, "types 7, 0 and 1"),
        (0, describe_product(96, 64, (0, 0, 1)), TensorMemoryError, "96 x 64 is no shape"),
        (0, describe_product(256, 64, (0, 0, 1)), TensorMemoryError, "256 x 64 is no shape"),
        (0, describe_product(128, 64, (0, 0, 1)) | 4, TensorMemoryError, "bit 2 of the instruction descriptor"),
    ],
)  # fmt: skip
def test_wrong_descriptors(descriptor: int, shape: int | None, error: type[Exception], text: str) -> None:
    """The fault of an undefined descriptor has its bits; an unsupported form is refused."""
    with pytest.raises(error, match=text):
        _run_changed(descriptor, shape)


def test_base_without_swizzle() -> None:
    """Triton sets the base offset of factors without a swizzle, where it has no effect."""
    _run_changed(4 << 49)


@pytest.mark.parametrize(("rows", "lane"), [(128, 16), (128, 64), (64, 8), (64, 32)])
def test_lane_of_the_result(rows: int, lane: int) -> None:
    """A result begins at lane 0, or at 16 if it fills half of each quarter."""
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(rows, 64, (0, 0, 1)))
    code = code.replace("[%d], %a", f"[%d+{lane << 16}], %a")
    with pytest.raises(TensorMemoryError, match=f"the lanes {lane}; all have lane 0"):
        run_product(factor, factor, code, 64)


def test_unwritten_factor() -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1)))
    text = write_kernel(code, columns=128, size=8192)
    text = text.replace("setp.ge.u32 %p, %r3, 2048;", "setp.ge.u32 %p, %r3, 512;")
    with pytest.raises(UninitializedReadError, match="matrix element at shared address"):
        launch(text, np.zeros(8192, np.uint8), np.zeros((128, 64), np.uint32), unwritten="error")


@pytest.mark.parametrize(
    "form",
    ["tcgen05.shift.cta_group::1.down [%d]", "tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%d], %b, %r7, %no"],
)
def test_unsupported(form: str) -> None:
    """The error names what is not executed."""
    with pytest.raises(UnsupportedInstructionError, match=r"tcgen05.*: rows that move down are not executed"):
        launch(write_kernel(f"{form};\n"), np.zeros(128, np.uint8), np.zeros(1))


@pytest.mark.parametrize("negate", range(4))
def test_signs(negate: int) -> None:
    """The descriptor negates either factor, or both."""
    a, b = make_factor(128, 16, "f16"), make_factor(32, 16, "f16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, b))
    shape = describe_product(128, 32, (0, 0, 1), negate=negate)
    out = run_product(left, right, make_code(left, right, "f16", shape, columns=32), 32)
    sign = (-1) ** negate.bit_count()
    np.testing.assert_array_equal(decode(out, "f32"), sign * (a.astype(np.float64) @ b.astype(np.float64).T))


@pytest.mark.parametrize(("saturate", "expected"), [(0, -(2**31) + 31), (1, 2**31 - 1)])
def test_saturation(saturate: int, expected: int) -> None:
    """Integer sums wrap around, or saturate."""
    factor = lay_out(np.ones((128, 32), np.int8), "none", mn_major=False)
    names = ", ".join(["%m0"] * 8)
    before = (
        f"mov.u32 %m0, {2**31 - 1};\nadd.u32 %r5, %d, %quarter;\n"
        f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], {{{names}}};\ntcgen05.wait::st.sync.aligned;\n"
    )
    shape = describe_product(128, 8, (1, 1, 2), saturate=saturate)
    code = make_code(factor, factor, "i8", shape, rest="%yes", before=before, columns=8)
    out = run_product(factor, factor, code, 8)
    assert (out.view(np.int32) == expected).all()


def test_store_without_wait() -> None:
    """A product needs ``wait::st`` before it adds to stored words."""
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    before = fill(64).replace("tcgen05.wait::st.sync.aligned;\n", "")
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1)), rest="%yes", before=before)
    with pytest.raises(
        TensorMemoryError, match=r"lane 0, column 0, written by a tcgen05\.st without tcgen05\.wait::st"
    ):
        run_product(factor, factor, code, 64)
