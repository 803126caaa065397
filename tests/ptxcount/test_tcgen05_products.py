"""Products of ``tcgen05.mma`` against NumPy, with factors in canonical layouts, and errors."""

from itertools import product

import numpy as np
import pytest

from ptxcount.util.errors import TensorMemoryError, UninitializedReadError, UnsupportedInstructionError
from tests.ptxcount.small_floats import NARROW
from tests.ptxcount.snippets import list_registers
from tests.ptxcount.tcgen05_kernels import (
    ABSOLUTE_STRIDE,
    BASE_OFFSET,
    FIRST_THREAD,
    FIXED_FIELD,
    LANE,
    SWIZZLE_CODE,
    SWIZZLES,
    WAIT,
    describe_product,
    describe_scaled_product,
    fill,
    finish,
    join_images,
    launch,
    lay_out,
    load_descriptors,
    store,
    write_kernel,
)
from tests.ptxcount.tcgen05_products import (
    KINDS,
    RNG,
    decode,
    find_lanes,
    make_code,
    make_factor,
    multiply,
    multiply_exactly,
    run_product,
)

#: Kind of a product, types of the left and the right factor, and type of the result.
FORMS = [
    (name, left, right, result)
    for name, kind in KINDS.items()
    for left, right, result in product(kind.factors, kind.factors, kind.results)
]


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(("kind", "left_type", "right_type", "result"), FORMS)
def test_types_as_in_numpy(kind: str, left_type: str, right_type: str, result: str, rows: int) -> None:
    """Floats also test the bit that negates the left factor."""
    k, is_negated = KINDS[kind].k, kind != "i8"
    a, b = make_factor(rows, k, left_type), make_factor(32, k, right_type)
    types, fields = (left_type, right_type), {"negate": int(is_negated)}
    out = multiply(a, b, kind, types=types, result=result, swizzle="32", fields=fields)
    expected = multiply_exactly(a, b)
    np.testing.assert_array_equal(out, -expected if is_negated else expected)


#: Kind, swizzle, and True for an MN-major factor. ``128_32``, the 128-byte swizzle with 32-byte atoms, needs these.
ORDERS = [*product(("f16", "f8f6f4"), ("none", "32", "64", "128"), (False, True), (False, True)),
          ("tf32", "128_32", True, True)]  # fmt: skip


@pytest.mark.parametrize(("kind", "swizzle", "turns_a", "turns_b"), ORDERS)
def test_orders_and_swizzles_as_in_numpy(kind: str, swizzle: str, turns_a: bool, turns_b: bool) -> None:
    a, b = (make_factor(128, KINDS[kind].k, KINDS[kind].factors[0]) for _ in range(2))
    out = multiply(a, b, kind, swizzle=swizzle, majors=(turns_a, turns_b))
    np.testing.assert_array_equal(out, multiply_exactly(a, b))


def test_steps_along_a_row_accumulate() -> None:
    """Four products of K = 16 take a row of 64 elements: each begins 32 bytes further.

    Addresses in descriptors are in units of 16 bytes, so 32 bytes are 2.
    """
    a, b = make_factor(128, 64), make_factor(32, 64)
    left, right = (lay_out(m, "128") for m in (a, b))
    mma = "@%p tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %r7, {};\n"
    steps = mma.format("%no") + ("add.u64 %a, %a, 2;\nadd.u64 %b, %b, 2;\n" + mma.format("%yes")) * 3
    describe = f"{load_descriptors(left, right)}mov.u32 %r7, {describe_product(128, 32)};\n"
    code = f"{describe}{FIRST_THREAD}{steps}{finish(32)}"
    out = run_product(left, right, code, 32)
    np.testing.assert_array_equal(decode(out, "f32"), multiply_exactly(a, b))


def test_products_of_blocks_that_branch_apart() -> None:
    """Enough blocks to run apart: those with odd numbers branch between the commit of the product and its wait."""
    blocks, a, b = 16, make_factor(128, 16), make_factor(32, 16)
    left, right = lay_out(a), lay_out(b)
    code = make_code(left, right, "f16", describe_product(128, 32), columns=32)
    branch = "and.b32 %r4, %r1, 1; setp.eq.u32 %p, %r4, 1; @%p bra ODD;\nODD:\n"
    commit, wait, rest = code.partition(WAIT)
    image = join_images([left, right])[0]
    out = np.zeros((blocks, 128, 32), np.uint32)
    text = write_kernel(f"{commit}{branch}{wait}{rest}", columns=32, size=len(image))
    launch(text, np.tile(image, blocks), out, blocks, unwritten="error", races="error")
    np.testing.assert_array_equal(decode(out, "f32"), [multiply_exactly(a, b)] * blocks)


#: Code that makes a mask of the lanes 0, 2 and 127, in four words.
_MASK = "mov.u32 %m0, 0b101;\nmov.u32 %m1, 0;\nmov.u32 %m2, 0;\nmov.u32 %m3, 0x80000000;\n"


@pytest.mark.parametrize(("rest", "scale", "kept_lanes"), [
    ("%no", 0, []), ("%yes", 1, []), ("%yes, 3", 2**-3, []), ("{%m0, %m1, %m2, %m3}, %yes", 1, [0, 2, 127]),
])  # fmt: skip
def test_old_result_is_ignored_or_added(rest: str, scale: float, kept_lanes: list[int]) -> None:
    """The operands `rest` are a mask of lanes that keep the old result, a predicate that adds it, and a shift.

    A shift of 3 divides the old result by 2**3.
    """
    a, b = make_factor(128, 16), make_factor(64, 16)
    words = (np.arange(128)[:, None] * LANE + np.arange(64)).astype(np.uint32)  # those of `fill`
    old = words.view(np.float32).astype(np.float64)
    expected = (multiply_exactly(a, b) + old * scale).astype(np.float32)
    expected[kept_lanes] = old[kept_lanes]
    np.testing.assert_array_equal(multiply(a, b, rest=rest, before=_MASK + fill(64)), expected)


@pytest.mark.parametrize("rows", [64, 128])
def test_left_factor_may_be_in_tensor_memory(rows: int) -> None:
    """Word k of a lane, in column 64 + k, has the elements 2k and 2k + 1 of a row.

    The kernel makes arbitrary words, 3 * lane + constant. As halves, they are tiny positive numbers.
    """
    constants = [k + (5 * k << 16) for k in range(8)]
    names = [f"%v{k}" for k in range(8)]
    words = "\n".join(f"mad.lo.u32 {name}, %t, 3, {number};" for name, number in zip(names, constants, strict=True))
    before = f"{words}\n{store(names, 64)}"
    b = make_factor(32, 16)
    right = lay_out(b)
    code = make_code(right, right, "f16", describe_product(rows, 32), before=before, columns=32)
    code = code.replace("[%d], %a, %b", "[%d], [%d+64], %b")
    out = run_product(right, right, code, 32)
    stored = (3 * np.arange(128)[:, None] + constants).astype(np.uint32)
    a = stored.view(np.float16)[find_lanes(rows)]
    np.testing.assert_allclose(decode(out[find_lanes(rows)], "f32"), multiply_exactly(a, b), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name, (_, bits) in NARROW.items() if bits < 8])
def test_narrow_types_are_padded(name: str) -> None:
    """A row of 32 elements has two units of 16 bytes. Each begins with 16 packed elements; the rest is padding."""
    dtype, bits = NARROW[name]
    numbers = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    elements = RNG.integers(0, 1 << bits, (2, 128, 32))
    factors = []
    for matrix, rows in zip(elements, (128, 64), strict=True):
        bits_of_elements = (matrix[:rows, :, None] >> np.arange(bits)) & 1
        padded = np.zeros((rows, 2, 8 * 16), np.uint8)
        padded[:, :, : 16 * bits] = bits_of_elements.reshape(rows, 2, -1)
        packed = np.packbits(padded, axis=2, bitorder="little").reshape(rows, 32)
        factors.append(lay_out(packed, "32"))
    left, right = factors
    code = make_code(left, right, "f8f6f4", describe_product(128, 64, (name, name)))
    out = run_product(left, right, code, 64)
    expected = numbers[elements[0]] @ numbers[elements[1, :64]].T
    np.testing.assert_allclose(decode(out, "f32"), expected, rtol=1e-6)


#: Bits that negate the right and the left factor, and the sign of the product.
@pytest.mark.parametrize(("negate", "sign"), [(0b00, 1), (0b01, -1), (0b10, -1), (0b11, 1)])
def test_descriptor_negates_factors(negate: int, sign: int) -> None:
    a, b = make_factor(128, 16), make_factor(32, 16)
    np.testing.assert_array_equal(multiply(a, b, fields={"negate": negate}), sign * multiply_exactly(a, b))


@pytest.mark.parametrize(("saturate", "expected"), [(0, -(2**31) + 31), (1, 2**31 - 1)])
def test_integer_sums_wrap_or_saturate(saturate: int, expected: int) -> None:
    """Each sum adds 32 products of ones to the largest integer, 2**31 - 1."""
    factor = lay_out(np.ones((128, 32), np.int8))
    before = f"mov.u32 %m0, {2**31 - 1};\n{store(['%m0'] * 8)}"
    idesc = describe_product(128, 8, ("s8", "s8"), "s32", saturate=saturate)
    code = make_code(factor, factor, "i8", idesc, rest="%yes", before=before, columns=8)
    out = run_product(factor, factor, code, 8)
    assert (out.view(np.int32) == expected).all()


def _run_changed(changed_bits: int = 0, idesc: int | None = None) -> None:
    """Run a product of f16 with changed bits in the left memory descriptor; assert its result."""
    a = make_factor(128, 16)
    left, right = (lay_out(matrix) for matrix in (a, a[:64]))
    left = left._replace(descriptor=left.descriptor ^ changed_bits)
    code = make_code(left, right, "f16", describe_product(128, 64) if idesc is None else idesc)
    out = run_product(left, right, code, 64)
    np.testing.assert_array_equal(decode(out, "f32"), multiply_exactly(a, a[:64]))


#: Changed bits of the left memory descriptor, instruction descriptor if it is another, and the error. The product is
#: dense, of f16, and of one block.
WRONG_DESCRIPTORS: list[tuple[int, int | None, type[Exception], str]] = [
    (FIXED_FIELD, None, TensorMemoryError, "bits 46 to 48 of the shared memory descriptor .* are 000"),
    (3 * SWIZZLE_CODE, None, TensorMemoryError, "the swizzle, are 3; allowed are 0, 1, 2, 4, 6"),
    (BASE_OFFSET | SWIZZLES["128"].code * SWIZZLE_CODE, None, UnsupportedInstructionError, "base offset"),
    (ABSOLUTE_STRIDE, None, UnsupportedInstructionError, "absolute stride"),
    (0, describe_product(128, 64, left=7), TensorMemoryError, "the type of A, are 7; they must be 0"),
    (0, describe_product(96, 64), TensorMemoryError, "96 x 64 is no shape .*; allowed M are 128, 64"),
    (0, describe_product(256, 64), TensorMemoryError, "256 x 64 is no shape"),
    (0, describe_product(128, 64, sparse=1), TensorMemoryError, "bit 2 of the instruction descriptor"),
]


@pytest.mark.parametrize(("changed_bits", "idesc", "error", "text"), WRONG_DESCRIPTORS)
def test_wrong_descriptors_are_errors(changed_bits: int, idesc: int | None, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        _run_changed(changed_bits, idesc)


def test_base_offset_without_swizzle_has_no_effect() -> None:
    """Triton sets a base offset also without a swizzle."""
    _run_changed(4 * BASE_OFFSET)


@pytest.mark.parametrize(("rows", "lane"), [(128, 16), (128, 64), (64, 8), (64, 32)])
def test_result_at_a_wrong_lane_is_a_fault(rows: int, lane: int) -> None:
    factor = lay_out(make_factor(128, 16))
    code = make_code(factor, factor, "f16", describe_product(rows, 64))
    code = code.replace("[%d], %a", f"[%d+{lane * LANE}], %a")
    message = f"the result begins at lane {lane}; with {rows} rows, .* must begin at lane 0"
    with pytest.raises(TensorMemoryError, match=message):
        run_product(factor, factor, code, 64)


def test_transposed_factor_in_tensor_memory_is_refused() -> None:
    factor = lay_out(make_factor(128, 16))
    code = make_code(factor, factor, "f16", describe_product(128, 64, turned=1))
    with pytest.raises(UnsupportedInstructionError, match="A in tensor memory cannot be transposed"):
        run_product(factor, factor, code.replace("[%d], %a", "[%d], [%d]"), 64)


def test_unwritten_factor_is_a_fault() -> None:
    """The kernel writes 512 of the 2048 words of its factors."""
    factor = lay_out(make_factor(128, 16))
    code = make_code(factor, factor, "f16", describe_product(128, 64))
    text = write_kernel(code, columns=128, size=4 * 2048)
    text = text.replace("setp.ge.u32 %p, %r3, 2048;", "setp.ge.u32 %p, %r3, 512;")
    with pytest.raises(UninitializedReadError, match="matrix element at shared address"):
        launch(text, np.zeros(4 * 2048, np.uint8), np.zeros((128, 64), np.uint32), unwritten="error")


@pytest.mark.parametrize(("form", "text"), [
    (f"tcgen05.shift.cta_group::1.down [%d+{32 * LANE}]", "the address has lane 32; ptxcount supports only lane 0"),
    ("tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%d], %b, %r7, %no",
     "the PTX ISA does not tell if a product with .ashift reads the rows before or after their shift"),
    (f"tcgen05.ld.sync.aligned.16x256b.x64.b32 {list_registers('%v', 256)}, [%d]",
     r"\.16x256b\.x64 needs 256 registers; at most 128 are allowed"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0}, [%d]", "it has 1 register; it needs 2"),
    (f"mov.u32 %r7, {describe_scaled_product(64, 'e2m1', 'ue8m0', is_long=True)};\n"
     "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%d], %a, %b, %r7, [%d+8], [%d+16], %no",
     r"K is 96 \(bit 31 of the instruction descriptor\); use \.block16 or \.block32 instead of \.scale_vec"),
    (f"mov.u32 %r7, {describe_product(64, 64, sparse=1)};\n"
     "tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %a, %b, [%d+8], %r7, %no",
     "it is a sparse product with 64 rows in a block; the PTX ISA does not specify where its metadata"),
])  # fmt: skip
def test_unsupported_forms_are_refused(form: str, text: str) -> None:
    with pytest.raises(UnsupportedInstructionError, match=rf"tcgen05.*: {text}"):
        launch(write_kernel(f"{form};\n"), np.zeros(128, np.uint8), np.zeros(1))


def test_store_without_wait_is_a_fault() -> None:
    factor = make_factor(128, 16)
    before = fill(64).replace("tcgen05.wait::st.sync.aligned;\n", "")
    message = r"lane 0, column 0, written by a tcgen05\.st without tcgen05\.wait::st"
    with pytest.raises(TensorMemoryError, match=message):
        multiply(factor, factor[:64], rest="%yes", before=before)
