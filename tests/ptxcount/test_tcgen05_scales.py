"""``tcgen05.cp``, block scales, and products of two blocks, against NumPy."""

from typing import NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import TensorMemoryError, UnsupportedInstructionError
from tests.ptxcount.small_floats import NEAR_ONE, decode_scales, ml_dtypes
from tests.ptxcount.snippets import module
from tests.ptxcount.tcgen05_kernels import (
    COMMIT,
    COMMIT_TO_PAIR,
    FIRST_THREAD,
    LANE,
    MEET,
    WAIT,
    Factor,
    describe_product,
    describe_scaled_product,
    dump,
    finish,
    join_images,
    launch,
    lay_out,
    load_descriptors,
    split_nibbles,
    store,
    write_kernel,
)

RNG = np.random.default_rng(6)
#: Shape of a copy -> rows, 32-bit words of a row, and the row that the first lane of each quarter receives.
COPIES = {
    "128x256b": (128, 8, (0, 32, 64, 96)), "128x128b": (128, 4, (0, 32, 64, 96)),
    "64x128b.warpx2::02_13": (64, 4, (0, 32, 0, 32)), "64x128b.warpx2::01_23": (64, 4, (0, 0, 32, 32)),
    "32x128b.warpx4": (32, 4, (0, 0, 0, 0)), "warpx4.32x128b": (32, 4, (0, 0, 0, 0)),  # Triton's spelling
}  # fmt: skip


def _copy(matrix: Array, shape: str, lane: int = 0) -> Array:
    """Copy a matrix to column 4 of tensor memory, from a lane on; return 16 columns of all lanes."""
    factor, out = lay_out(matrix), np.zeros((128, 16), np.uint32)
    copy = f"tcgen05.cp.cta_group::1.{shape} [%d+{lane * LANE + 4}], %a"
    code = f"{load_descriptors(factor, factor)}{FIRST_THREAD}@%p {copy};\n{finish(16)}"
    launch(write_kernel(code, size=len(factor.image)), factor.image, out, unwritten="off")
    return out


@pytest.mark.parametrize(("packing", "bits"), [("", 8), (".b8x16.b6x16_p32", 6), (".b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("shape", COPIES)
def test_copies_reach_their_lanes(shape: str, packing: str, bits: int) -> None:
    """Each 16 bytes begin with 16 packed elements; each element becomes a byte."""
    rows, words, first_rows = COPIES[shape]
    matrix = RNG.integers(0, 1 << 32, (rows, words), dtype=np.uint32)
    out = _copy(matrix, f"{shape}{packing}")
    bits_of_units = np.unpackbits(matrix.view(np.uint8).reshape(rows, -1, 16), axis=2, bitorder="little")
    bits_of_elements = bits_of_units[..., : 16 * bits].reshape(rows, -1, bits)
    elements = (bits_of_elements @ (1 << np.arange(bits))).astype(np.uint8)
    row_of_lane = np.repeat(first_rows, 32) + np.arange(128) % 32
    np.testing.assert_array_equal(out[:, 4 : 4 + words], elements.view(np.uint32)[row_of_lane])


@pytest.mark.parametrize(("packing", "bits"), [("", 8), (".b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("lane", [0, 31])
def test_copy_of_four_rows_reaches_all_quarters(lane: int, packing: str, bits: int) -> None:
    """The layout in shared memory has groups of 8 rows. The copy takes 4, one to the lane of each quarter."""
    matrix = RNG.integers(0, 1 << 32, (8, 8), dtype=np.uint32)
    out = _copy(matrix, f"4x256b{packing}", lane)
    units = matrix[:4].view(np.uint8).reshape(8, 16)
    if bits == 4:
        units = split_nibbles(units[:, :8])
    expected = np.zeros_like(out)
    expected[lane::32, 4:12] = units.reshape(4, 32).view(np.uint32)
    np.testing.assert_array_equal(out, expected)


class ScaledForm(NamedTuple):
    """A product with scales: its kind with qualifiers, the type of factors, and number per row and type of scales."""

    kind: str
    factors: str
    scales_per_row: int
    scale: str = "ue8m0"


SCALED = [
    ScaledForm("mxf8f6f4.block_scale", "e4m3", 1), ScaledForm("mxf8f6f4.block_scale.block32", "e4m3", 1),
    ScaledForm("mxf4.block_scale", "e2m1", 2), ScaledForm("mxf4nvf4.block_scale.scale_vec::2X", "e2m1", 2),
    ScaledForm("mxf4nvf4.block_scale.scale_vec::4X", "e2m1", 4, "ue4m3"),
]  # fmt: skip
#: Columns of tensor memory with the scales of the left and of the right factor.
_LEFT_SCALES, _RIGHT_SCALES = 64, 68
#: Step of an address of scales from a byte of a word to the next (bits 30 and 31).
_BYTE = 1 << 30


def _lay_out_scales(scales: Array) -> Factor:
    """Lay out words of scales: a copy .32x128b.warpx4 puts row r in lane r % 32 and column r // 32."""
    table = np.zeros((32, 4), np.uint32)
    table[:, : len(scales) // 32] = scales.view(np.uint32).reshape(-1, 32).T
    return lay_out(table)


def _decode_factor(matrix: Array, name: str) -> Array:
    if name == "e4m3":
        return np.asarray(matrix.view(ml_dtypes.float8_e4m3fn).astype(np.float64))
    return np.asarray(split_nibbles(matrix).view(ml_dtypes.float4_e2m1fn).astype(np.float64))


@pytest.mark.parametrize("right_rows", [32, 64])
@pytest.mark.parametrize("form", SCALED)
def test_scales_multiply_parts_of_a_row(form: ScaledForm, right_rows: int) -> None:
    """Scales are the last bytes of words; the descriptor and the address of the right scales name the first of them."""
    sides = (128, right_rows)
    matrices = [RNG.integers(0, 120, (rows, 32), dtype=np.uint8) for rows in sides]  # no code is NaN
    words = [RNG.integers(*NEAR_ONE[form.scale], (rows, 4), dtype=np.uint8) for rows in sides]
    first_byte = 4 - form.scales_per_row
    factors = [lay_out(matrix, "32") for matrix in matrices]
    image, descriptors = join_images([*factors, *map(_lay_out_scales, words)])
    copies = "".join(
        f"add.u64 %rd3, %rd2, {descriptor};\n@%p tcgen05.cp.cta_group::1.32x128b.warpx4 [%d+{column}], %rd3;\n"
        for descriptor, column in zip(descriptors[2:], (_LEFT_SCALES, _RIGHT_SCALES), strict=True)
    )
    idesc = describe_scaled_product(right_rows, form.factors, form.scale, (first_byte, first_byte))
    scales = f"[%d+{_LEFT_SCALES}], [%r8]"
    body = (
        f"{load_descriptors(*factors)}mov.u32 %r7, {idesc};\n{FIRST_THREAD}{copies}"
        f"add.u32 %r8, %d, {_RIGHT_SCALES + first_byte * _BYTE};\n"
        f"@%p tcgen05.mma.cta_group::1.kind::{form.kind} [%d], %a, %b, %r7, {scales}, %no;\n{finish(right_rows)}"
    )
    out = np.zeros((128, right_rows), np.uint32)
    launch(write_kernel(body, columns=128, size=len(image)), image, out)
    left, right = (_decode_factor(matrix, form.factors) for matrix in matrices)
    left_scales, right_scales = (
        decode_scales(side[:, first_byte:].copy(), form.scale).repeat(left.shape[1] // form.scales_per_row, axis=1)
        for side in words
    )
    np.testing.assert_allclose(out.view(np.float32), (left * left_scales) @ (right * right_scales).T, rtol=1e-6)


@pytest.mark.parametrize(("byte", "error", "text"), [
    (0, TensorMemoryError, "scales differ between lanes that are 32 apart; 4 such lanes"),
    (2, UnsupportedInstructionError, "bits 30 and 31 of the address of A's scales are 2; they must be 0, or"),
])  # fmt: skip
def test_wrong_scales_are_refused(byte: int, error: type[Exception], text: str) -> None:
    """Each lane's scales are its thread's index, so they differ between quarters. `byte` is that of the left scales."""
    factor = lay_out(np.ones((128, 32), np.uint8), "32")
    body = (
        f"{store(['%t'] * 8, _LEFT_SCALES)}{load_descriptors(factor, factor)}"
        f"mov.u32 %r7, {describe_scaled_product(64, 'e4m3', 'ue8m0')};\n"
        f"add.u32 %r8, %d, {_LEFT_SCALES + byte * _BYTE};\n{FIRST_THREAD}"
        "@%p tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale "
        f"[%d], %a, %b, %r7, [%r8], [%d+{_RIGHT_SCALES}], %no;\n"
    )
    image, _ = join_images([factor, factor])
    with pytest.raises(error, match=text):
        launch(write_kernel(body, columns=128, size=len(image)), image, np.zeros(1))


@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize("multicast", [False, True])
def test_pair_of_blocks_multiplies(rows: int, multicast: bool) -> None:
    """A pair multiplies both blocks' rows by both blocks' columns (PTX ISA, layouts A and B).

    A multicast commit reaches the barriers of both blocks; without it, the second block does not wait for its own.
    """
    a = RNG.integers(-3, 4, (rows, 16)).astype(np.float16)
    b = RNG.integers(-3, 4, (64, 16)).astype(np.float16)
    parts = zip(np.split(a, 2), np.split(b, 2), strict=True)
    factors = [[lay_out(matrix) for matrix in pair] for pair in parts]  # of each block
    images = [join_images(pair)[0] for pair in factors]
    commit = COMMIT_TO_PAIR if multicast else COMMIT.format(group=2)
    wait = WAIT if multicast else f"setp.eq.u32 %p, %r1, 1;\n@%p bra WAITED;\n{WAIT}WAITED:\n{MEET}"
    columns = 64 if rows == 256 else 32
    is_first_thread = "or.b32 %r8, %r1, %t;\nsetp.eq.u32 %p, %r8, 0;\n"  # of the first block
    body = (
        f"{MEET}{load_descriptors(*factors[0])}mov.u32 %r7, {describe_product(rows, 64)};\n{is_first_thread}"
        f"@%p tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %r7, %no;\n{commit}{wait}{dump(columns)}"
    )
    out = np.zeros((2, 128, columns), np.uint32)
    counters = launch(write_kernel(body, size=len(images[0]), group=2), np.concatenate(images), out, 2, cluster=2)
    assert [(finding.code, finding.times) for finding in counters.findings] == [("uncounted-read", 1)]
    numbers, expected = out.view(np.float32), a.astype(np.float64) @ b.astype(np.float64).T
    if rows == 256:
        np.testing.assert_array_equal(numbers.reshape(256, 64), expected)
    else:
        halves = numbers.reshape(2, 2, 64, 32)  # block, half of the columns, row, column in the half
        np.testing.assert_array_equal(halves.transpose(0, 2, 1, 3).reshape(128, 64), expected)


_COPY_TILE = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2"
)
#: Each block of a pair copies eight rows of 128 bytes to itself, and both signal the even block's barrier. The address
#: of this barrier is the own one without bit 24 (CUTLASS 4, ``Sm100MmaPeerBitMask``). %h is the mask of the own rank.
_PAIR_COPY = f"""
mov.u32 %r6, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; setp.eq.and.u32 %p2, %r6, 0, %p1;
@%p1 mbarrier.init.shared.b64 [barrier], 1;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%p2 mbarrier.arrive.expect_tx.shared.b64 %rd3, [barrier], {2 * 8 * 128};
mov.b64 %rd1, p0; cvta.param.u64 %rd1, %rd1; mov.u32 %r2, rows; mov.u32 %r3, barrier; and.b32 %r3, %r3, 0xFEFFFFFF;
shl.b32 %r4, %r6, 3; mov.u32 %r5, 1; shl.b32 %r5, %r5, %r6; cvt.u16.u32 %h, %r5;
@%p1 {_COPY_TILE} [%r2], [%rd1, {{0, %r4}}], [%r3], %h;
setp.eq.u32 %p2, %r6, 1; @%p2 bra WAITED;
WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [barrier], 0; @!%p3 bra WAIT;
WAITED: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mad.lo.u32 %r2, %r0, 8, %r2; ld.shared.b64 %rd4, [%r2];
ld.param.u64 %rd2, [p1]; mad.lo.u32 %r6, %r6, 128, %r0; mad.wide.u32 %rd2, %r6, 8, %rd2; st.global.b64 [%rd2], %rd4;
"""


def test_copies_of_a_pair_signal_one_barrier() -> None:
    """A block copies eight rows; its 128 threads store 8 bytes each. Rank 1 stores after the 1,024 bytes of rank 0."""
    rows = RNG.integers(0, 1 << 31, (16, 32)).astype(np.int32)
    out = np.zeros_like(rows)
    registers = ".shared .align 128 .b8 rows[1024]; .shared .align 8 .b64 barrier; .reg .b16 %h;"
    text = module(_PAIR_COPY, 2, registers, maps=1, target="8.7 sm_100a")
    ptxcount.count(text, None, 2, 128, [ptxcount.TensorMap(rows, (8, 32)), out], cluster=2)
    np.testing.assert_array_equal(out, rows)
