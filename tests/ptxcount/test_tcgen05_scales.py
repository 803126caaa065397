"""``tcgen05.cp``, block scales, and products of two blocks, against NumPy."""

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import TensorMemoryError, UnsupportedInstructionError
from tests.ptxcount.small_floats import NEAR_ONE, decode_scales, ml_dtypes
from tests.ptxcount.snippets import module
from tests.ptxcount.tcgen05_kernels import (
    COMMIT,
    FIRST_THREAD,
    WAIT,
    describe_product,
    describe_scaled_product,
    dump,
    finish,
    launch,
    lay_out,
    load_descriptors,
    store,
    write_kernel,
)

RNG = np.random.default_rng(6)
#: Shape of a copy -> rows, words of each, and the first row of each 32 lanes.
COPIES = {
    "128x256b": (128, 8, (0, 32, 64, 96)), "128x128b": (128, 4, (0, 32, 64, 96)),
    "64x128b.warpx2::02_13": (64, 4, (0, 32, 0, 32)), "64x128b.warpx2::01_23": (64, 4, (0, 0, 32, 32)),
    "32x128b.warpx4": (32, 4, (0, 0, 0, 0)), "warpx4.32x128b": (32, 4, (0, 0, 0, 0)),  # Triton's spelling
}  # fmt: skip


def _copy(matrix: Array, form: str) -> Array:
    """Copy a matrix to column 4 of tensor memory; return all lanes."""
    factor, out = lay_out(matrix, "none", mn_major=False), np.zeros((128, 16), np.uint32)
    code = f"{load_descriptors(factor, factor)}{FIRST_THREAD}@%p tcgen05.cp.cta_group::1.{form}, %a;\n{finish(16)}"
    launch(write_kernel(code, size=len(factor.image)), factor.image, out, unwritten="off")
    return out


@pytest.mark.parametrize(("packing", "bits"), [("", 8), (".b8x16.b6x16_p32", 6), (".b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("shape", COPIES)
def test_copies_reach_their_lanes(shape: str, packing: str, bits: int) -> None:
    """Each 16 bytes begin with 16 packed elements; each element becomes a byte."""
    rows, words, first = COPIES[shape]
    matrix = RNG.integers(0, 1 << 32, (rows, words), dtype=np.uint32)
    out = _copy(matrix, f"{shape}{packing} [%d+4]")
    lane = np.arange(128)
    bits_of_groups = np.unpackbits(matrix.view(np.uint8).reshape(rows, -1, 16), axis=2, bitorder="little")
    bits_of_elements = bits_of_groups[..., : 16 * bits].reshape(rows, -1, bits)
    numbers = bits_of_elements @ (1 << np.arange(bits))
    matrix = np.ascontiguousarray(numbers.astype(np.uint8)).view(np.uint32)
    np.testing.assert_array_equal(out[:, 4 : 4 + words], matrix[np.array(first)[lane // 32] + lane % 32])


@pytest.mark.parametrize(("packing", "bits"), [("", 8), (".b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("lane", [0, 31])
def test_copy_of_four_rows_reaches_all_quarters(lane: int, packing: str, bits: int) -> None:
    """The layout in shared memory has groups of 8 rows. The copy takes 4, one to the lane of each quarter."""
    matrix = RNG.integers(0, 1 << 32, (8, 8), dtype=np.uint32)
    out = _copy(matrix, f"4x256b{packing} [%d+{lane << 16 | 4}]")
    content = matrix[:4].view(np.uint8).reshape(4, 2, 16)
    if bits == 4:
        content = np.stack([content[..., :8] & 15, content[..., :8] >> 4], axis=-1)
    expected = np.zeros_like(out)
    expected[lane::32, 4:12] = content.reshape(4, 32).view(np.uint32)
    np.testing.assert_array_equal(out, expected)


#: Kinds with scales: qualifier, bytes of a row, scales of it, their type, code and type of factors.
SCALED = [
    ("mxf8f6f4.block_scale", 32, 1, "ue8m0", 0, ml_dtypes.float8_e4m3fn),
    ("mxf8f6f4.block_scale.block32", 32, 1, "ue8m0", 0, ml_dtypes.float8_e4m3fn),
    ("mxf4.block_scale", 32, 2, "ue8m0", 1, ml_dtypes.float4_e2m1fn),
    ("mxf4nvf4.block_scale.scale_vec::2X", 32, 2, "ue8m0", 1, ml_dtypes.float4_e2m1fn),
    ("mxf4nvf4.block_scale.scale_vec::4X", 32, 4, "ue4m3", 1, ml_dtypes.float4_e2m1fn),
]


@pytest.mark.parametrize("columns", [32, 64])
@pytest.mark.parametrize(("kind", "width", "count", "scale", "code", "dtype"), SCALED)
def test_scales_multiply_parts_of_a_row(
    kind: str, width: int, count: int, scale: str, code: int, dtype: type, columns: int
) -> None:
    """The descriptor has the first byte of the scales; bits 30 and 31 of the address of the right scales repeat it."""
    bits = [RNG.integers(0, 120, (rows, width), dtype=np.uint8) for rows in (128, columns)]
    scales = [RNG.integers(*NEAR_ONE[scale], (rows, 4), dtype=np.uint8) for rows in (128, columns)]
    first = 4 - count
    factors = [lay_out(matrix, "32", mn_major=False) for matrix in bits]
    words = [np.ascontiguousarray(each).view(np.uint32)[:, 0] for each in scales]
    # Row r has its words in lane r % 32 and column r // 32, in all quarters: .32x128b.warpx4 of a 32 x 4 matrix.
    tables = [np.zeros((32, 4), np.uint32) for _ in words]
    for table, word in zip(tables, words, strict=True):
        table[:, : len(word) // 32] = word.reshape(-1, 32).T
    images = [*(factor.image for factor in factors), *(lay_out(t, "none", mn_major=False).image for t in tables)]
    starts = np.cumsum([0, *(len(image) for image in images)]).tolist()
    descriptor = lay_out(tables[0], "none", mn_major=False).descriptor
    copies = "".join(
        f"add.u64 %rd3, %rd2, {descriptor + (start >> 4)};\n"
        f"@%p tcgen05.cp.cta_group::1.32x128b.warpx4 [%d+{place}], %rd3;\n"
        for start, place in ((starts[2], 64), (starts[3], 68))
    )
    shape = describe_scaled_product(columns, code, scale, (first, first))
    body = (
        f"{load_descriptors(*factors)}mov.u32 %r7, {shape};\n{FIRST_THREAD}{copies}"
        f"add.u32 %r8, %d, {68 | first << 30};\n"
        f"@%p tcgen05.mma.cta_group::1.kind::{kind} [%d], %a, %b, %r7, [%d+64], [%r8], %no;\n{finish(columns)}"
    )
    out = np.zeros((128, columns), np.uint32)
    image = np.concatenate(images)
    launch(write_kernel(body, columns=128, size=len(image)), image, out)
    numbers = []
    for matrix, row_scales in zip(bits, scales, strict=True):
        codes = matrix if code == 0 else np.stack([matrix & 15, matrix >> 4], axis=-1).reshape(len(matrix), -1)
        values = codes.view(dtype).astype(np.float64)
        part = decode_scales(row_scales[:, first : first + count].copy(), scale)
        numbers.append(values * np.repeat(part, values.shape[1] // count, axis=1))
    np.testing.assert_allclose(out.view(np.float32), numbers[0] @ numbers[1].T, rtol=1e-6)


@pytest.mark.parametrize(("byte", "error", "text"), [
    (0, TensorMemoryError, "scales differ between the quarters"),
    (2, UnsupportedInstructionError, "the address of scales has byte 2, the instruction descriptor has 0"),
])  # fmt: skip
def test_wrong_scales_are_refused(byte: int, error: type[Exception], text: str) -> None:
    """The scales are the numbers of threads, and differ between quarters; bits 30 and 31 of an address are a byte."""
    factor = lay_out(np.ones((128, 32), np.uint8), "32", mn_major=False)
    body = (
        f"{store(['%t'] * 8, 64)}{load_descriptors(factor, factor)}"
        f"mov.u32 %r7, {describe_scaled_product(64, 0, 'ue8m0')};\nadd.u32 %r8, %d, {64 | byte << 30};\n{FIRST_THREAD}"
        "@%p tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%d], %a, %b, %r7, [%r8], [%d+68], %no;\n"
    )
    image = np.concatenate([factor.image] * 2)
    with pytest.raises(error, match=text):
        launch(write_kernel(body, columns=128, size=len(image)), image, np.zeros(1))


@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize("multicast", [False, True])
def test_pair_of_blocks_multiplies(rows: int, multicast: bool) -> None:
    """A pair multiplies both blocks' rows by both blocks' columns (layouts A and B); a commit reaches both barriers."""
    a = RNG.integers(-3, 4, (rows, 16)).astype(np.float16)
    b = RNG.integers(-3, 4, (64, 16)).astype(np.float16)
    parts = zip(np.split(a, 2), np.split(b, 2), strict=True)
    factors = [[lay_out(matrix, "none", mn_major=False) for matrix in pair] for pair in parts]
    images = [np.concatenate([left.image, right.image]) for left, right in factors]
    cluster_barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    commit = COMMIT.format(group=2)
    if multicast:
        commit = commit.replace("::cluster.b64 [barrier]", "::cluster.multicast::cluster.b64 [barrier], %h1")
    wait = WAIT if multicast else f"setp.eq.u32 %p, %r1, 1;\n@%p bra WAITED;\n{WAIT}WAITED:\n{cluster_barrier}"
    columns = 64 if rows == 256 else 32
    body = (
        f".reg .b16 %h1;\nmov.b16 %h1, 3;\n{cluster_barrier}{load_descriptors(*factors[0])}"
        f"mov.u32 %r7, {describe_product(rows, 64, (0, 0, 1))};\nor.b32 %r8, %r1, %t;\nsetp.eq.u32 %p, %r8, 0;\n"
        f"@%p tcgen05.mma.cta_group::2.kind::f16 [%d], %a, %b, %r7, %no;\n{commit}{wait}{dump(columns)}"
    )
    out = np.zeros((2, 128, columns), np.uint32)
    counters = launch(write_kernel(body, size=len(images[0]), group=2), np.concatenate(images), out, 2, cluster=2)
    assert [(finding.code, finding.times) for finding in counters.findings] == [("uncounted-read", 1)]
    numbers, expected = out.view(np.float32), a.astype(np.float64) @ b.astype(np.float64).T
    if rows == 256:
        np.testing.assert_array_equal(numbers.reshape(256, 64), expected)
    else:
        halves = numbers.reshape(2, 2, 64, 32)  # block, half of the columns, row, column
        np.testing.assert_array_equal(halves.transpose(0, 2, 1, 3).reshape(128, 64), expected)


_COPY_TILE = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2"
)
#: Each block of a pair copies eight rows to itself, and both signal the even block's barrier: its address lacks bit 24.
_PAIR_COPY = f"""
mov.u32 %r6, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; setp.eq.and.u32 %p2, %r6, 0, %p1;
@%p1 mbarrier.init.shared.b64 [barrier], 1;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%p2 mbarrier.arrive.expect_tx.shared.b64 %rd3, [barrier], 2048;
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
    rows = RNG.integers(0, 1 << 31, (16, 32)).astype(np.int32)
    out = np.zeros_like(rows)
    registers = ".shared .align 128 .b8 rows[1024]; .shared .align 8 .b64 barrier; .reg .b16 %h;"
    text = module(_PAIR_COPY, 2, registers, maps=1, target="8.7 sm_100a")
    ptxcount.count(text, None, 2, 128, [ptxcount.TensorMap(rows, (8, 32)), out], cluster=2)
    np.testing.assert_array_equal(out, rows)
