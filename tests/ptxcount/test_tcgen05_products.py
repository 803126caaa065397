"""Products of ``tcgen05.mma`` against NumPy, with factors in canonical layouts, and errors."""

import numpy as np
import pytest

from ptxcount.util.errors import TensorMemoryError, UninitializedReadError, UnsupportedInstructionError
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.snippets import list_registers
from tests.ptxcount.tcgen05_kernels import (
    FIRST_THREAD,
    describe_product,
    describe_scaled_product,
    fill,
    finish,
    launch,
    lay_out,
    load_descriptors,
    store,
    write_kernel,
)
from tests.ptxcount.tcgen05_products import (
    KINDS,
    RNG,
    TYPES,
    decode,
    find_lanes,
    make_code,
    make_factor,
    multiply,
    multiply_exactly,
    run_product,
)

FORMS = [(kind, a, b, d) for kind, (types, results, _) in KINDS.items() for a in types for b in types for d in results]


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(("kind", "left_type", "right_type", "result"), FORMS)
def test_types_as_in_numpy(kind: str, left_type: str, right_type: str, result: str, rows: int) -> None:
    results, products = KINDS[kind][1:]
    a, b = make_factor(rows, products, left_type), make_factor(32, products, right_type)
    codes, negates = (TYPES[left_type][1], TYPES[right_type][1], results[result]), kind != "i8"
    out = multiply(a, b, kind, codes=codes, swizzle="32", result=result, fields={"negate": negates})
    np.testing.assert_array_equal(out, (-1) ** negates * multiply_exactly(a, b))


@pytest.mark.parametrize("swizzle", ["none", "32", "64", "128"])
@pytest.mark.parametrize("majors", [(a, b) for a in (False, True) for b in (False, True)])
@pytest.mark.parametrize("kind", ["f16", "f8f6f4"])
def test_orders_and_swizzles_as_in_numpy(kind: str, majors: tuple[bool, bool], swizzle: str) -> None:
    a, b = (make_factor(128, KINDS[kind][2], KINDS[kind][0][0]) for _ in range(2))
    np.testing.assert_array_equal(multiply(a, b, kind, swizzle=swizzle, majors=majors), multiply_exactly(a, b))


def test_swizzle_of_32_byte_units_as_in_numpy() -> None:
    a, b = make_factor(128, 8, "tf32"), make_factor(64, 8, "tf32")
    codes = (TYPES["tf32"][1], TYPES["tf32"][1], KINDS["tf32"][1]["f32"])
    out = multiply(a, b, "tf32", codes=codes, swizzle="128_32", majors=(True, True))
    np.testing.assert_array_equal(out, multiply_exactly(a, b))


def test_steps_along_a_row_accumulate() -> None:
    """Four products of K = 16 take a row of 64: each is 32 bytes further, which is 2 in the address of a descriptor."""
    a, b = make_factor(128, 64, "f16"), make_factor(32, 64, "f16")
    left, right = (lay_out(m, "128", mn_major=False) for m in (a, b))
    mma = "@%p tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %r7, {};\n"
    steps = mma.format("%no") + ("add.u64 %a, %a, 2;\nadd.u64 %b, %b, 2;\n" + mma.format("%yes")) * 3
    code = (
        f"{load_descriptors(left, right)}mov.u32 %r7, {describe_product(128, 32, (0, 0, 1))};\n{FIRST_THREAD}{steps}"
        f"{finish(32)}"
    )
    out = run_product(left, right, code, 32)
    np.testing.assert_array_equal(decode(out, "f32"), multiply_exactly(a, b))


#: Mask with lanes 0, 2 and 127, in four words.
_MASK = "mov.u32 %m0, 0b101;\nmov.u32 %m1, 0;\nmov.u32 %m2, 0;\nmov.u32 %m3, 0x80000000;\n"


@pytest.mark.parametrize(("rest", "scale", "kept"), [
    ("%no", 0, []), ("%yes", 1, []), ("%yes, 3", 1 / 8, []), ("{%m0, %m1, %m2, %m3}, %yes", 1, [0, 2, 127]),
])  # fmt: skip
def test_old_result_is_ignored_or_added(rest: str, scale: float, kept: list[int]) -> None:
    """The old result is scaled by 2^-3 with the operand 3, and by 0 or 1 otherwise; lanes in the mask keep it."""
    a, b = make_factor(128, 16, "f16"), make_factor(64, 16, "f16")
    words = ((np.arange(128)[:, None] << 16) + np.arange(64)).astype(np.uint32)
    old = words.view(np.float32).astype(np.float64)
    expected = (multiply_exactly(a, b) + old * scale).astype(np.float32)
    expected[kept] = old[kept]
    np.testing.assert_array_equal(multiply(a, b, rest=rest, before=_MASK + fill(64)), expected)


@pytest.mark.parametrize("rows", [64, 128])
def test_left_factor_may_be_in_tensor_memory(rows: int) -> None:
    """Column 64 + k of lane t holds elements 2k and 2k + 1 of a row: the halves of the word 3t + k + (5k << 16)."""
    b = make_factor(32, 16, "f16")
    right = lay_out(b, "none", mn_major=False)
    words = "\n".join(f"mad.lo.u32 %v{k}, %t, 3, {k + (k * 5 << 16)};" for k in range(8))
    before = f"{words}\n{store([f'%v{k}' for k in range(8)], 64)}"
    code = make_code(right, right, "f16", describe_product(rows, 32, (0, 0, 1)), before=before, columns=32)
    code = code.replace("[%d], %a, %b", "[%d], [%d+64], %b")
    out = run_product(right, right, code, 32)
    k = np.arange(8)
    stored = (np.arange(128)[:, None] * 3 + k + (k * 5 << 16)).astype(np.uint32)
    a = stored.view(np.float16)[find_lanes(rows)]
    np.testing.assert_allclose(decode(out[find_lanes(rows)], "f32"), multiply_exactly(a, b), rtol=1e-6)


#: Types of less than 8 bits: dtype, bits, and code in the instruction descriptor.
NARROW = [(ml_dtypes.float4_e2m1fn, 4, 5), (ml_dtypes.float6_e2m3fn, 6, 3), (ml_dtypes.float6_e3m2fn, 6, 4)]


@pytest.mark.parametrize(("dtype", "bits", "code"), NARROW)
def test_narrow_types_are_padded(dtype: type, bits: int, code: int) -> None:
    """A row has two groups of 16 elements. The packed elements of a group begin at 16 bytes; the rest is padding."""
    numbers = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    elements = RNG.integers(0, 1 << bits, (2, 128, 32))
    factors = []
    for matrix, rows in zip(elements, (128, 64), strict=True):
        bits_of_elements = (matrix[:rows, :, None] >> np.arange(bits)) & 1
        padded = np.zeros((rows, 2, 8 * 16), np.uint8)
        padded[:, :, : 16 * bits] = bits_of_elements.reshape(rows, 2, -1)
        packed = np.packbits(padded, axis=2, bitorder="little").reshape(rows, 32)
        factors.append(lay_out(packed, "32", mn_major=False))
    left, right = factors
    shape = describe_product(128, 64, (code, code, 1))
    out = run_product(left, right, make_code(left, right, "f8f6f4", shape), 64)
    expected = numbers[elements[0]] @ numbers[elements[1, :64]].T
    np.testing.assert_allclose(decode(out, "f32"), expected, rtol=1e-6)


@pytest.mark.parametrize("negate", range(4))
def test_descriptor_negates_factors(negate: int) -> None:
    a, b = make_factor(128, 16, "f16"), make_factor(32, 16, "f16")
    out = multiply(a, b, fields={"negate": negate})
    np.testing.assert_array_equal(out, (-1) ** negate.bit_count() * multiply_exactly(a, b))


@pytest.mark.parametrize(("saturate", "expected"), [(0, -(2**31) + 31), (1, 2**31 - 1)])
def test_integer_sums_wrap_or_saturate(saturate: int, expected: int) -> None:
    """Each sum adds 32 products of ones to the largest integer, 2**31 - 1."""
    factor = lay_out(np.ones((128, 32), np.int8), "none", mn_major=False)
    before = f"mov.u32 %m0, {2**31 - 1};\n{store(['%m0'] * 8)}"
    shape = describe_product(128, 8, (1, 1, 2), saturate=saturate)
    code = make_code(factor, factor, "i8", shape, rest="%yes", before=before, columns=8)
    out = run_product(factor, factor, code, 8)
    assert (out.view(np.int32) == expected).all()


def _run_changed(descriptor: int, shape: int | None = None) -> None:
    """Run a product with flipped bits in the left descriptor; assert its result."""
    a = make_factor(128, 16, "f16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, a[:64]))
    left = left._replace(descriptor=left.descriptor ^ descriptor)
    code = make_code(left, right, "f16", describe_product(128, 64, (0, 0, 1)) if shape is None else shape)
    out = run_product(left, right, code, 64)
    np.testing.assert_array_equal(decode(out, "f32"), multiply_exactly(a, a[:64]))


@pytest.mark.parametrize(("descriptor", "shape", "error", "text"), [
    (1 << 46, None, TensorMemoryError, "bits 46 to 48 of the shared memory descriptor .* are 000"),
    (3 << 61, None, TensorMemoryError, "the swizzle, are 3; allowed are 0, 1, 2, 4, 6"),
    (1 << 49 | 2 << 61, None, UnsupportedInstructionError, "base offset"),
    (1 << 52, None, UnsupportedInstructionError, "absolute stride"),
    (0, describe_product(128, 64, (7, 0, 1)), TensorMemoryError, "the type of A, are 7; they must be 0"),
    (0, describe_product(96, 64, (0, 0, 1)), TensorMemoryError, "96 x 64 is no shape .*; M must be one of 128, 64"),
    (0, describe_product(256, 64, (0, 0, 1)), TensorMemoryError, "256 x 64 is no shape"),
    (0, describe_product(128, 64, (0, 0, 1), sparse=1), TensorMemoryError, "bit 2 of the instruction descriptor"),
])  # fmt: skip
def test_wrong_descriptors_are_errors(descriptor: int, shape: int | None, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        _run_changed(descriptor, shape)


def test_base_offset_without_swizzle_has_no_effect() -> None:
    """Triton sets a base offset also without a swizzle."""
    _run_changed(4 << 49)


@pytest.mark.parametrize(("rows", "lane"), [(128, 16), (128, 64), (64, 8), (64, 32)])
def test_result_at_a_wrong_lane_is_a_fault(rows: int, lane: int) -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(rows, 64, (0, 0, 1)))
    code = code.replace("[%d], %a", f"[%d+{lane << 16}], %a")
    with pytest.raises(TensorMemoryError, match=f"the lanes {lane}; for {rows} rows, all must have lane 0"):
        run_product(factor, factor, code, 64)


def test_transposed_factor_in_tensor_memory_is_refused() -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1), turned=1))
    with pytest.raises(UnsupportedInstructionError, match="A in tensor memory cannot be transposed"):
        run_product(factor, factor, code.replace("[%d], %a", "[%d], [%d]"), 64)


def test_unwritten_factor_is_a_fault() -> None:
    """The kernel writes only 512 of the 2048 words of its factors."""
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1)))
    text = write_kernel(code, columns=128, size=8192)
    text = text.replace("setp.ge.u32 %p, %r3, 2048;", "setp.ge.u32 %p, %r3, 512;")
    with pytest.raises(UninitializedReadError, match="matrix element at shared address"):
        launch(text, np.zeros(8192, np.uint8), np.zeros((128, 64), np.uint32), unwritten="error")


@pytest.mark.parametrize(("form", "text"), [
    (f"tcgen05.shift.cta_group::1.down [%d+{32 << 16}]", "address with lane 32; only lane 0 is supported"),
    ("tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%d], %b, %r7, %no",
     "the PTX ISA does not tell if the product reads the rows before or after their shift"),
    (f"tcgen05.ld.sync.aligned.16x256b.x64.b32 {list_registers('%v', 256)}, [%d]",
     r"\.16x256b\.x64 needs 256 registers; at most 128 are allowed"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0}, [%d]", "it has 1 register; 2 are needed"),
    (f"mov.u32 %r7, {describe_scaled_product(64, 1, 'ue8m0', is_long=True)};\n"
     "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%d], %a, %b, %r7, [%d+8], [%d+16], %no",
     r"K is 96 \(bit 31 of the instruction descriptor\); use \.block16 or \.block32 instead of \.scale_vec"),
    (f"mov.u32 %r7, {describe_product(64, 64, (0, 0, 1), sparse=1)};\n"
     "tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %a, %b, [%d+8], %r7, %no",
     "a sparse product with 64 rows in a block: the text of the PTX ISA does not specify where its metadata"),
])  # fmt: skip
def test_unsupported_forms_are_refused(form: str, text: str) -> None:
    with pytest.raises(UnsupportedInstructionError, match=rf"tcgen05.*: {text}"):
        launch(write_kernel(f"{form};\n"), np.zeros(128, np.uint8), np.zeros(1))


def test_store_without_wait_is_a_fault() -> None:
    factor = make_factor(128, 16, "f16")
    before = fill(64).replace("tcgen05.wait::st.sync.aligned;\n", "")
    message = r"lane 0, column 0, written by a tcgen05\.st without tcgen05\.wait::st"
    with pytest.raises(TensorMemoryError, match=message):
        multiply(factor, factor[:64], rest="%yes", before=before)
