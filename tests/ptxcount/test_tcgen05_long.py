"""Products of 4-bit factors with K = 96, against NumPy.

A row has three or six scales. Those beyond a word are four columns later for every 128 rows: CUTLASS 4
(``sm103_blockscaled_mma_warpspecialized.hpp``) copies four scales of 128 rows to four columns.
"""

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
    launch,
    lay_out,
    write_kernel,
)

RNG = np.random.default_rng(11)
_KIND = "mxf4nvf4.block_scale.block"


def _describe(columns: int, firsts: tuple[int, int], scale: str) -> int:
    return describe_scaled_product(columns, 1, scale, firsts, is_long=True)  # 1: e2m1


def _lay_out_scales(codes: Array, first: int) -> Array:
    """Lay out the scales of rows as 32 lanes of words; a row's scales begin at a byte of its first word."""
    rows, count = codes.shape
    groups = -(-rows // 128)
    table = np.zeros((32, 8 * groups, 4), np.uint8)
    row, byte = np.indices((rows, count))
    byte += first
    table[row % 32, row // 32 + byte // 4 * 4 * groups, byte % 4] = codes
    return table.reshape(32, -1).view(np.uint32)


#: Columns of tensor memory where the scales begin; the result begins at column 0.
_SCALES = 256


def _write_code(images: list[Factor], tables: list[list[Factor]], kind: str, shape: int, columns: int) -> str:
    starts = np.cumsum([0, *(len(image.image) for image in [*images, *tables[0], *tables[1]])]).tolist()
    lines = [ADDRESS]
    pairs = zip(("%a", "%b"), images, starts, strict=False)
    lines += [f"add.u64 {name}, %rd2, {image.descriptor + (start >> 4)};" for name, image, start in pairs]
    lines += [f"mov.u32 %r7, {shape};", FIRST_THREAD]
    for place, (part, start) in enumerate(zip([*tables[0], *tables[1]], starts[2:], strict=False)):
        lines.append(f"add.u64 %rd3, %rd2, {part.descriptor + (start >> 4)};")
        lines.append(f"@%p tcgen05.cp.cta_group::1.32x128b.warpx4 [%d+{_SCALES + 4 * place}], %rd3;")
    scales = f"[%d+{_SCALES}], [%d+{_SCALES + 4 * len(tables[0])}]"
    lines.append(f"@%p tcgen05.mma.cta_group::1.kind::{kind} [%d], %a, %b, %r7, {scales}, %no;\n")
    return "\n".join(lines) + finish(columns)


def _split_nibbles(matrix: Array) -> Array:
    codes = np.stack([matrix & 15, matrix >> 4], axis=-1).reshape(len(matrix), -1)
    return np.asarray(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64))


def _run(columns: int, block: int, firsts: tuple[int, int], scale: str, swizzle: str = "none") -> tuple[Array, Array]:
    count = 96 // block
    matrices = [RNG.integers(0, 256, (rows, 48), dtype=np.uint8) for rows in (128, columns)]
    codes = [RNG.integers(*NEAR_ONE[scale], (rows, count), dtype=np.uint8) for rows in (128, columns)]
    factors = [lay_out(matrix, swizzle, mn_major=False) for matrix in matrices]
    tables = []
    for scales, first in zip(codes, firsts, strict=True):
        words = _lay_out_scales(scales, first)
        tables.append([lay_out(part, "none", mn_major=False) for part in np.split(words, words.shape[1] // 4, 1)])
    code = _write_code(factors, tables, f"{_KIND}{block}", _describe(columns, firsts, scale), min(columns, 128))
    image = np.concatenate([factor.image for factor in [*factors, *tables[0], *tables[1]]])
    out = np.zeros((128, min(columns, 128)), np.uint32)
    launch(write_kernel(code, columns=512, size=len(image)), image, out)
    factors_of_row = [np.repeat(decode_scales(scales, scale), block, axis=1) for scales in codes]
    left, right = (_split_nibbles(m) * scales for m, scales in zip(matrices, factors_of_row, strict=True))
    return out.view(np.float32), (left @ right.T)[:, : out.shape[1]]


@pytest.mark.parametrize("columns", [64, 192])
@pytest.mark.parametrize(
    ("block", "firsts", "scale"),
    [(32, (0, 0), "ue8m0"), (32, (3, 1), "ue8m0"), (32, (2, 3), "ue8m0"), (16, (0, 2), "ue4m3"), (16, (2, 0), "ue8m0")],
)
def test_long_products_as_in_numpy(block: int, firsts: tuple[int, int], scale: str, columns: int) -> None:
    out, expected = _run(columns, block, firsts, scale)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("swizzle", ["64", "128"])
def test_rows_within_swizzle_lines_as_in_numpy(swizzle: str) -> None:
    """A row of 96 4-bit numbers has 48 bytes, less than a swizzle line of 64 or 128 bytes."""
    out, expected = _run(columns=64, block=32, firsts=(0, 0), scale="ue8m0", swizzle=swizzle)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_row_across_lines_is_refused() -> None:
    """Another field of the descriptor says where such a row goes on."""
    message = "a row of 48 bytes begins at byte 0 of a 32-byte swizzle line and crosses its end"
    with pytest.raises(UnsupportedInstructionError, match=message):
        _run(64, 32, (0, 0), "ue8m0", "32")


def test_sparse_long_products_are_refused() -> None:
    """The descriptor is refused before the scales, and the metadata at column 300, are read."""
    factor = lay_out(np.ones((128, 32), np.uint8), "32", mn_major=False)
    code = _write_code([factor, factor], [[], []], f"{_KIND}32", _describe(64, (0, 0), "ue8m0") | 1 << 2, 64)  # sparse
    code = code.replace("tcgen05.mma.", "tcgen05.mma.sp.").replace("%b, %r7", "%b, [%d+300], %r7")
    with pytest.raises(TensorMemoryError, match="K is 96, which sparse factors do not allow; use dense factors"):
        launch(write_kernel(code, columns=512), factor.image, np.zeros((128, 64), np.uint32))
