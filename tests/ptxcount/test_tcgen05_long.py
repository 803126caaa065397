"""Products of 4-bit factors with K = 96, against NumPy.

A row has three or six scales. Those beyond a word are four columns later for every 128 rows: CUTLASS 4
(``sm103_blockscaled_mma_warpspecialized.hpp``) copies four scales of 128 rows to four columns.
"""

from typing import NamedTuple

import numpy as np
import pytest

from ptxcount.lanes.warps import Array
from ptxcount.util.errors import TensorMemoryError, UnsupportedInstructionError
from tests.ptxcount.small_floats import NEAR_ONE, decode_scales, ml_dtypes
from tests.ptxcount.tcgen05_kernels import (
    ADDRESS,
    FIRST_THREAD,
    Factor,
    describe_scaled_product,
    finish,
    join_images,
    launch,
    lay_out,
    split_nibbles,
    write_kernel,
)

RNG = np.random.default_rng(11)
_K = 96
#: Columns of tensor memory where the scales begin; the result begins at column 0.
_SCALES = 256


def _lay_out_scales(codes: Array, first_byte: int) -> list[Factor]:
    """Lay out the scales of rows as 32 lanes of words, in parts of four columns.

    A row's scales begin at `first_byte` of its first word.
    """
    rows, count = codes.shape
    parts_of_rows = -(-rows // 128)
    table = np.zeros((32, 8 * parts_of_rows, 4), np.uint8)  # lanes, columns, bytes of a word
    row, byte = np.indices((rows, count))
    byte += first_byte
    table[row % 32, row // 32 + byte // 4 * 4 * parts_of_rows, byte % 4] = codes
    words = table.reshape(32, -1).view(np.uint32)
    return [lay_out(part) for part in np.split(words, words.shape[1] // 4, axis=1)]


class Case(NamedTuple):
    """A product with 128 rows: rows of the right factor, elements per scale, and type and first bytes of scales.

    The first bytes are those of the left and of the right scales.
    """

    right_rows: int
    block: int
    firsts: tuple[int, int]
    scale: str


def _write_code(case: Case, descriptors: list[int], left_parts: int, *, is_sparse: bool = False) -> str:
    """Return code that copies scales to tensor memory, multiplies, and stores at most 128 columns of the result.

    `descriptors` are those of two factors, of the parts of the left scales, and of those of the right scales.
    """
    a, b, *parts = descriptors
    right_rows, _, firsts, scale = case
    idesc = describe_scaled_product(right_rows, "e2m1", scale, firsts, is_long=True, is_sparse=is_sparse)
    lines = [ADDRESS, f"add.u64 %a, %rd2, {a};", f"add.u64 %b, %rd2, {b};", f"mov.u32 %r7, {idesc};", FIRST_THREAD]
    for place, part in enumerate(parts):
        lines.append(f"add.u64 %rd3, %rd2, {part};")
        lines.append(f"@%p tcgen05.cp.cta_group::1.32x128b.warpx4 [%d+{_SCALES + 4 * place}], %rd3;")
    scales = f"[%d+{_SCALES}], [%d+{_SCALES + 4 * left_parts}]"
    mma = f"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block{case.block}"
    lines.append(f"@%p {mma} [%d], %a, %b, %r7, {scales}, %no;\n")
    return "\n".join(lines) + finish(min(right_rows, 128))


def _decode(matrix: Array) -> Array:
    return np.asarray(split_nibbles(matrix).view(ml_dtypes.float4_e2m1fn).astype(np.float64))


def _run(case: Case, swizzle: str = "none") -> tuple[Array, Array]:
    """Multiply random factors; return the result and NumPy's, at most 128 columns of both."""
    count, sides = _K // case.block, (128, case.right_rows)
    matrices = [RNG.integers(0, 256, (rows, _K // 2), dtype=np.uint8) for rows in sides]
    codes = [RNG.integers(*NEAR_ONE[case.scale], (rows, count), dtype=np.uint8) for rows in sides]
    factors = [lay_out(matrix, swizzle) for matrix in matrices]
    left_scales, right_scales = (_lay_out_scales(*side) for side in zip(codes, case.firsts, strict=True))
    image, descriptors = join_images([*factors, *left_scales, *right_scales])
    code = _write_code(case, descriptors, len(left_scales))
    out = np.zeros((128, min(case.right_rows, 128)), np.uint32)
    launch(write_kernel(code, columns=512, size=len(image)), image, out)
    left, right = (
        _decode(matrix) * np.repeat(decode_scales(scales, case.scale), case.block, axis=1)
        for matrix, scales in zip(matrices, codes, strict=True)
    )
    return out.view(np.float32), (left @ right.T)[:, : out.shape[1]]


@pytest.mark.parametrize("right_rows", [64, 192])
@pytest.mark.parametrize(
    ("block", "firsts", "scale"),
    [(32, (0, 0), "ue8m0"), (32, (3, 1), "ue8m0"), (32, (2, 3), "ue8m0"), (16, (0, 2), "ue4m3"), (16, (2, 0), "ue8m0")],
)
def test_long_products_as_in_numpy(block: int, firsts: tuple[int, int], scale: str, right_rows: int) -> None:
    out, expected = _run(Case(right_rows, block, firsts, scale))
    np.testing.assert_allclose(out, expected, rtol=1e-6)


_SIMPLE = Case(right_rows=64, block=32, firsts=(0, 0), scale="ue8m0")


@pytest.mark.parametrize("swizzle", ["64", "128"])
def test_rows_within_swizzle_lines_as_in_numpy(swizzle: str) -> None:
    """A row of 96 4-bit numbers has 48 bytes, less than a swizzle line of 64 or 128 bytes."""
    out, expected = _run(_SIMPLE, swizzle)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_row_across_lines_is_refused() -> None:
    """Another field of the descriptor says where such a row goes on."""
    message = "descriptor 0x[0-9a-f]{16} of B, a row begins at byte 0 of a 32-byte swizzle line and has 48 bytes"
    with pytest.raises(UnsupportedInstructionError, match=message):
        _run(_SIMPLE, "32")


def test_sparse_long_products_are_refused() -> None:
    """The descriptor is refused before the scales, and the metadata at column 300, are read."""
    image, descriptors = join_images([lay_out(np.ones((128, 32), np.uint8), "32")] * 2)
    code = _write_code(_SIMPLE, descriptors, left_parts=0, is_sparse=True)
    code = code.replace("tcgen05.mma.", "tcgen05.mma.sp.").replace("%b, %r7", "%b, [%d+300], %r7")
    with pytest.raises(TensorMemoryError, match="K is 96, which sparse factors do not allow; use dense factors"):
        launch(write_kernel(code, columns=512, size=len(image)), image, np.zeros((128, 64), np.uint32))
