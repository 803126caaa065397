"""Sparse products of ``tcgen05.mma``, and masks and shifts of columns, against NumPy.

Metadata lies in tensor memory as CUTLASS 4 lays it out (``mma_traits_sm100_frag.hpp``, ``tmem_e_frg``). With fewer than
128 rows, the other lanes repeat those of the rows (``tmem_e_frg_ws``).
"""

import numpy as np
import pytest

from ptxcount.lanes.warps import Array
from ptxcount.util.errors import TensorMemoryError, UnsupportedInstructionError
from tests.ptxcount.matrices import keep_half
from tests.ptxcount.tcgen05_kernels import Layout, describe_product, launch, lay_out, store, write_kernel
from tests.ptxcount.tcgen05_products import (
    TYPES,
    decode,
    make_code,
    make_factor,
    multiply,
    multiply_exactly,
    run_product,
)

RNG = np.random.default_rng(9)
_WIDE = (Layout((8, 2, 8), (1, 2048, 16)), Layout((16, 2), (128, 8)))
#: Type of the factors -> kind, code and type of the result, and layouts of rows and of K in bits of 128 lanes.
SPARSE = {
    "f16": ("f16", 1, "f32", _WIDE), "bf16": ("f16", 1, "f32", _WIDE),
    "tf32": ("tf32", 1, "f32", (Layout((8, 2, 8), (1, 1024, 16)), Layout((8, 2), (128, 8)))),
    "e4m3": ("f8f6f4", 1, "f32", (Layout((128,), (1,)), Layout((64,), (128,)))),
    "s8": ("i8", 2, "s32", (Layout((128,), (1,)), Layout((64,), (128,)))),
}  # fmt: skip
#: Code that loads two words of each thread from shared memory.
_LOAD = "mov.u32 %r2, factors; mad.lo.u32 %r2, %t, 8, %r2; bar.sync 0; ld.shared.v2.u32 {{%v0, %v1}}, [%r2+{start}];\n"


def _sparsify(name: str, matrix: Array, selector: int) -> tuple[Array, Array]:
    """Zero half of the left factor; return the stored elements, and two words of metadata per lane."""
    size, width = (2, 2) if name == "tf32" else (4, 1)
    stored, codes = keep_half(RNG, matrix, size)
    rows, products = SPARSE[name][3]
    places = rows.offsets()[: len(matrix), None] + products.offsets()[::size]
    words = np.zeros((128, 2), np.uint32)
    bits = places // 128 * width + 32 * selector
    np.bitwise_or.at(words, (places % 128, bits // 32), (codes << bits % 32).astype(np.uint32))
    return stored, np.tile(words[: len(matrix)], (128 // len(matrix), 1))


def _run(name: str, selector: int, a: Array, b: Array, words: Array, stationary: str = "") -> Array:
    kind, result = SPARSE[name][:2]
    left, right = lay_out(a, "32", mn_major=False), lay_out(b, "64", mn_major=False)
    image = np.concatenate([left.image, right.image, words.view(np.uint8).reshape(-1)])
    codes = (TYPES[name][1], TYPES[name][1], result)
    shape = describe_product(len(a), 64, codes, sparse=1, selector=selector)
    columns = len(a) // 2 if stationary else 64
    load = _LOAD.format(start=len(left.image) + len(right.image))
    before = load + store(["%v0", "%v1"], 96)
    code = make_code(left, right, kind, shape, before=before, columns=columns, stationary=f"{stationary}.sp")
    code = code.replace("%a, %b, %r7", "%a, %b, [%d+96], %r7")
    out = np.zeros((128, columns), np.uint32)
    launch(write_kernel(code, columns=128, size=len(image)), image, out, unwritten="off")
    return out


@pytest.mark.parametrize(("name", "selector"), [(name, 0) for name in SPARSE] + [("f16", 1), ("tf32", 1)])
def test_sparse_products_are_exact(name: str, selector: int) -> None:
    """For types of 16 and 32 bits, the selector is the column of the metadata."""
    products = 64 // np.dtype(TYPES[name][0]).itemsize
    a, b = make_factor(128, products, name), make_factor(64, products, name)
    stored, words = _sparsify(name, a, selector)
    out = decode(_run(name, selector, stored, b, words), SPARSE[name][2])
    np.testing.assert_array_equal(out, multiply_exactly(a, b))


@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_products_of_ws_are_exact(name: str, rows: int) -> None:
    products = 64 // np.dtype(TYPES[name][0]).itemsize
    a, b = make_factor(rows, products, name), make_factor(64, products, name)
    stored, words = _sparsify(name, a, 0)
    parts = np.split(decode(_run(name, 0, stored, b, words, ".ws"), SPARSE[name][2]), 128 // rows)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), multiply_exactly(a, b))


def test_wide_sparse_products_of_ws_are_refused() -> None:
    factor = lay_out(make_factor(128, 16, "f16"), "none", mn_major=False)
    code = make_code(factor, factor, "f16", describe_product(128, 256, (0, 0, 1), sparse=1), stationary=".ws.sp")
    with pytest.raises(TensorMemoryError, match="128 x 256 is no shape of a product"):
        run_product(factor, factor, code.replace("%b, %r7", "%b, [%d+96], %r7"), 64)


def test_undefined_metadata_is_refused() -> None:
    """Metadata of zeros has equal indices."""
    a, b = make_factor(128, 16, "f16"), make_factor(64, 32, "f16")
    with pytest.raises(UnsupportedInstructionError, match=r"the metadata 0b0000 .* is undefined; allowed are 0b0100"):
        _run("f16", 0, a, b, np.zeros((128, 2), np.uint32))


def _describe_mask(zeros: int, used: int, starts: tuple[int, ...] = (), first: int = 0) -> int:
    """Encode a mask in which runs of zeros and of used columns alternate; bit 39 turns it on."""
    bits = sum(start << 8 * part for part, start in enumerate(starts))
    return bits | first << 32 | 1 << 39 | (zeros - 1) << 40 | (used - 1) << 48


@pytest.mark.parametrize("first", [0, 1, 0b0110])
@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (64, 2), (128, 1)])
def test_column_mask_makes_zeros(rows: int, parts: int, first: int) -> None:
    """Five columns are used, and three are zeros, in turn. Each part of the columns has its own start.

    ``first`` has the bits of the parts that begin with zeros.
    """
    starts, use, skip = (1, 4, 0, 2), 5, 3
    a, b = make_factor(rows, 16, "f16"), make_factor(64, 16, "f16")
    mask = _describe_mask(skip, use, starts, first)
    columns = 64 // parts
    out = multiply(a, b, columns=columns, stationary=".ws", rest=f"%no, {mask}")
    for part in range(parts):
        turn = [True] * skip + [False] * use if first >> part & 1 else [False] * use + [True] * skip
        zeros = np.array((turn * 64)[starts[part] : starts[part] + columns])
        b[columns * part : columns * (part + 1)][zeros] = 0
    np.testing.assert_array_equal(np.concatenate(np.split(out, parts), axis=1), multiply_exactly(a, b))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (64, 2), (128, 1)])
def test_column_shift_skips_columns(rows: int, parts: int, turned: bool) -> None:
    """A shift skips the first columns of the right factor; a mask counts the columns of the result."""
    a, b = make_factor(rows, 16, "f16"), make_factor(80, 16, "f16")
    columns, shift = 64 // parts, 11
    mask = _describe_mask(3, 5)
    for descriptor, period in ((0, 1), (mask, 8)):
        rest = f"%no, {shift << 56 | descriptor}"
        out = multiply(a, b, majors=(False, turned), columns=columns, stationary=".ws", rest=rest, shape_columns=64)
        used = b[shift : shift + 64] * (np.arange(64) % columns % period < 5)[:, None]
        np.testing.assert_array_equal(np.concatenate(np.split(out, parts), axis=1), multiply_exactly(a, used))


@pytest.mark.parametrize(("rows", "shift", "most"), [(32, 17, 16), (128, 33, 32)])
def test_large_column_shift_is_refused(rows: int, shift: int, most: int) -> None:
    factor = make_factor(128, 16, "f16")
    with pytest.raises(TensorMemoryError, match=f"is {shift}; at most {most} is allowed"):
        multiply(factor[:rows], factor[:64], stationary=".ws", columns=rows // 2, rest=f"%no, {shift << 56}")
