"""Errors of ``tcgen05.mma``: descriptors, lanes, unwritten factors, unsupported forms."""

from __future__ import annotations

import numpy as np
import pytest

from ptxcount.util.errors import TensorMemoryError, UninitializedReadError, UnsupportedInstructionError
from tests.ptxcount.snippets import list_registers
from tests.ptxcount.tcgen05_kernels import describe_product, fill, launch, lay_out, write_kernel
from tests.ptxcount.tcgen05_products import decode, make_code, make_factor, multiply, multiply_exactly, run_product


def _run_changed(descriptor: int, shape: int | None = None) -> None:
    """Run a product with flipped bits in the left descriptor; assert its result."""
    a = make_factor(128, 16, "f16")
    left, right = (lay_out(m, "none", mn_major=False) for m in (a, a[:64]))
    left = left._replace(descriptor=left.descriptor ^ descriptor)
    code = make_code(left, right, "f16", describe_product(128, 64, (0, 0, 1)) if shape is None else shape)
    out = run_product(left, right, code, 64)
    np.testing.assert_array_equal(decode(out, "f32"), multiply_exactly(a, a[:64]))


@pytest.mark.parametrize(
    ("descriptor", "shape", "error", "text"),
    [
        (1 << 46, None, TensorMemoryError, "bits 46 to 48 of the shared memory descriptor .* are 000"),
        (3 << 61, None, TensorMemoryError, "the swizzle, are 3; allowed are 0, 1, 2, 4, 6"),
        (1 << 49 | 2 << 61, None, UnsupportedInstructionError, "base offset"),
        (1 << 52, None, UnsupportedInstructionError, "absolute stride"),
        (0, describe_product(128, 64, (7, 0, 1)), TensorMemoryError, "the type of A, are 7; they must be 0"),
        (0, describe_product(96, 64, (0, 0, 1)), TensorMemoryError, "96 x 64 is no shape .*; M must be one of 128, 64"),
        (0, describe_product(256, 64, (0, 0, 1)), TensorMemoryError, "256 x 64 is no shape"),
        (0, describe_product(128, 64, (0, 0, 1)) | 4, TensorMemoryError, "bit 2 of the instruction descriptor"),
    ],
)  # fmt: skip
def test_wrong_descriptors_are_errors(descriptor: int, shape: int | None, error: type[Exception], text: str) -> None:
    """An undefined descriptor is a fault that names its field; an unsupported one is refused."""
    with pytest.raises(error, match=text):
        _run_changed(descriptor, shape)


def test_base_offset_without_swizzle_has_no_effect() -> None:
    """A base offset, which Triton sets also without a swizzle, has no effect there."""
    _run_changed(4 << 49)


@pytest.mark.parametrize(("rows", "lane"), [(128, 16), (128, 64), (64, 8), (64, 32)])
def test_result_at_a_wrong_lane_is_a_fault(rows: int, lane: int) -> None:
    """A result at a lane that its shape does not allow is a fault, which names the allowed lanes."""
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(rows, 64, (0, 0, 1)))
    code = code.replace("[%d], %a", f"[%d+{lane << 16}], %a")
    with pytest.raises(TensorMemoryError, match=f"the lanes {lane}; for {rows} rows, all must have lane 0"):
        run_product(factor, factor, code, 64)


def test_transposed_factor_in_tensor_memory_is_refused() -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1)) | 1 << 15)
    with pytest.raises(UnsupportedInstructionError, match="A in tensor memory cannot be transposed"):
        run_product(factor, factor, code.replace("[%d], %a", "[%d], [%d]"), 64)


def test_unwritten_factor_is_a_fault() -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 64, (0, 0, 1)))
    text = write_kernel(code, columns=128, size=8192)
    text = text.replace("setp.ge.u32 %p, %r3, 2048;", "setp.ge.u32 %p, %r3, 512;")
    with pytest.raises(UninitializedReadError, match="matrix element at shared address"):
        launch(text, np.zeros(8192, np.uint8), np.zeros((128, 64), np.uint32), unwritten="error")


#: The instruction descriptor of 128 x 64 products with K = 96.
_LONG = describe_product(0, 64, (1, 1, 0)) | 1 << 23 | 1 << 27 | 1 << 31


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("tcgen05.shift.cta_group::1.down [%d+2097152]", "address with lane 32; only lane 0 is supported"),
        (
            "tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%d], %b, %r7, %no",
            "the PTX ISA does not tell if the product reads the rows before or after their shift",
        ),
        (
            f"tcgen05.ld.sync.aligned.16x256b.x64.b32 {list_registers('%v', 256)}, [%d]",
            r"\.16x256b\.x64 needs 256 registers; at most 128 are allowed",
        ),
        (
            "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0}, [%d]",
            "it has 1 register; 2 are needed",
        ),
        (
            f"mov.u32 %r7, {_LONG};\n"
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%d], %a, %b, %r7, [%d+8], [%d+16], %no",
            r"K is 96 \(bit 31 of the instruction descriptor\); use \.block16 or \.block32 instead of \.scale_vec",
        ),
        (
            f"mov.u32 %r7, {describe_product(64, 64, (0, 0, 1)) | 4};\n"
            "tcgen05.mma.sp.cta_group::1.kind::f16 [%d], %a, %b, [%d+8], %r7, %no",
            "a sparse product with 64 rows in a block: the text of the PTX ISA does not specify where its metadata",
        ),
    ],
)
def test_unsupported_forms_are_refused(form: str, text: str) -> None:
    """The error for an unsupported form names the instruction and the reason."""
    with pytest.raises(UnsupportedInstructionError, match=rf"tcgen05.*: {text}"):
        launch(write_kernel(f"{form};\n"), np.zeros(128, np.uint8), np.zeros(1))


def test_store_without_wait_is_a_fault() -> None:
    """A product needs ``wait::st`` before it adds to stored words."""
    factor = make_factor(128, 16, "f16")
    before = fill(64).replace("tcgen05.wait::st.sync.aligned;\n", "")
    message = r"lane 0, column 0, written by a tcgen05\.st without tcgen05\.wait::st"
    with pytest.raises(TensorMemoryError, match=message):
        multiply(factor, factor[:64], rest="%yes", before=before)
