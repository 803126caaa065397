"""Sparse products of ``tcgen05.mma``, and masks and shifts of columns, against NumPy.

Metadata lies in tensor memory as CUTLASS 4 lays it out (``mma_traits_sm100_frag.hpp``, ``tmem_e_frg``). With fewer than
128 rows, the other lanes repeat those of the rows (``tmem_e_frg_ws``).
"""

from typing import NamedTuple

import numpy as np
import pytest

from ptxcount.lanes.warps import Array
from ptxcount.util.errors import TensorMemoryError, UnsupportedInstructionError
from tests.ptxcount.matrices import keep_half
from tests.ptxcount.tcgen05_kernels import Layout, describe_product, launch, lay_out, store, write_kernel
from tests.ptxcount.tcgen05_products import (
    DTYPES,
    decode,
    make_code,
    make_factor,
    multiply,
    multiply_exactly,
    run_product,
)

RNG = np.random.default_rng(9)
#: Column of tensor memory where the metadata begins; the result begins at column 0.
_METADATA = 96


class SparseType(NamedTuple):
    """A type of factors: kind and result of its product, and CuTe's layouts of metadata.

    The metadata of element k of a row is at the sum of `rows` and `products`: a lane plus 128 times a bit of the lane's
    words. For tf32, it is 128 times a pair of bits.
    """

    kind: str
    result: str
    rows: Layout
    products: Layout


_HALVES = SparseType("f16", "f32", rows=Layout((8, 2, 8), (1, 2048, 16)), products=Layout((16, 2), (128, 8)))
_LANE_OF_ROW = {"rows": Layout((128,), (1,)), "products": Layout((64,), (128,))}
SPARSE = {
    "f16": _HALVES, "bf16": _HALVES,
    "tf32": SparseType("tf32", "f32", rows=Layout((8, 2, 8), (1, 1024, 16)), products=Layout((8, 2), (128, 8))),
    "e4m3": SparseType("f8f6f4", "f32", **_LANE_OF_ROW), "s8": SparseType("i8", "s32", **_LANE_OF_ROW),
}  # fmt: skip
#: Code that loads two words of each thread from shared memory.
_LOAD = "mov.u32 %r2, factors; mad.lo.u32 %r2, %t, 8, %r2; bar.sync 0; ld.shared.v2.u32 {{%v0, %v1}}, [%r2+{start}];\n"


def _make_factors(name: str, rows: int) -> tuple[Array, Array]:
    """Make two factors of one instruction, with 64 bytes in a row: half of the left one's are stored."""
    products = 64 // np.dtype(DTYPES[name]).itemsize
    return make_factor(rows, products, name), make_factor(64, products, name)


def _sparsify(name: str, matrix: Array, selector: int = 0) -> tuple[Array, Array]:
    """Zero half of the left factor; return the stored elements, and two words of metadata per lane."""
    group, bits_per_place = (2, 2) if name == "tf32" else (4, 1)
    stored, codes = keep_half(RNG, matrix, group)
    rows, products = SPARSE[name].rows.offsets(), SPARSE[name].products.offsets()
    lanes, places = np.divmod(rows[: len(matrix), None] + products[::group], 128)[::-1]
    bits = places * bits_per_place + 32 * selector
    words = np.zeros((128, 2), np.uint32)
    np.bitwise_or.at(words, (lanes, bits // 32), (codes << bits % 32).astype(np.uint32))
    return stored, np.tile(words[: len(matrix)], (128 // len(matrix), 1))


def _run(name: str, stored: Array, b: Array, words: Array, *, selector: int = 0, stationary: str = "") -> Array:
    """Multiply stored elements with metadata `words` by b; return the result, (lanes, columns)."""
    kind, result, *_ = SPARSE[name]
    left, right = lay_out(stored, "32"), lay_out(b, "64")
    image = np.concatenate([left.image, right.image, words.view(np.uint8).reshape(-1)])
    idesc = describe_product(len(stored), 64, (name, name), result, sparse=1, selector=selector)
    columns = len(stored) // 2 if stationary else 64
    load = _LOAD.format(start=len(left.image) + len(right.image))
    before = load + store(["%v0", "%v1"], _METADATA)
    code = make_code(left, right, kind, idesc, before=before, columns=columns, stationary=f"{stationary}.sp")
    code = code.replace("%a, %b, %r7", f"%a, %b, [%d+{_METADATA}], %r7")
    out = np.zeros((128, columns), np.uint32)
    launch(write_kernel(code, columns=128, size=len(image)), image, out, unwritten="off")
    return decode(out, result)


@pytest.mark.parametrize(("name", "selector"), [(name, 0) for name in SPARSE] + [("f16", 1), ("tf32", 1)])
def test_sparse_products_are_exact(name: str, selector: int) -> None:
    """For types of 16 and 32 bits, the selector is the column of the metadata."""
    a, b = _make_factors(name, 128)
    stored, words = _sparsify(name, a, selector)
    np.testing.assert_array_equal(_run(name, stored, b, words, selector=selector), multiply_exactly(a, b))


@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_products_of_ws_are_exact(name: str, rows: int) -> None:
    """Parts of the columns are in different lanes."""
    a, b = _make_factors(name, rows)
    stored, words = _sparsify(name, a)
    parts = np.split(_run(name, stored, b, words, stationary=".ws"), 128 // rows)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), multiply_exactly(a, b))


def test_wide_sparse_products_of_ws_are_refused() -> None:
    factor = lay_out(make_factor(128, 16))
    code = make_code(factor, factor, "f16", describe_product(128, 256, sparse=1), stationary=".ws.sp")
    with pytest.raises(TensorMemoryError, match="128 x 256 is no shape of a product"):
        run_product(factor, factor, code.replace("%b, %r7", f"%b, [%d+{_METADATA}], %r7"), 64)


def test_undefined_metadata_is_refused() -> None:
    """Metadata of zeros has equal indices."""
    stored, b = make_factor(128, 16), make_factor(64, 32)
    with pytest.raises(UnsupportedInstructionError, match=r"the metadata 0b0000 .* is undefined; allowed are 0b0100"):
        _run("f16", stored, b, np.zeros((128, 2), np.uint32))


#: Step of the shift of columns in a mask descriptor.
_SHIFT = 1 << 56


def _describe_mask(zeros: int, used: int, starts: tuple[int, ...] = (), zeros_first: int = 0) -> int:
    """Encode an active mask, in which runs of zeros and of used columns alternate.

    Each part of the columns has its own start in the alternation. `zeros_first` has a bit for each part that begins
    with zeros.
    """
    bits = sum(start << 8 * part for part, start in enumerate(starts))
    is_active = 1 << 39
    return bits | zeros_first << 32 | is_active | (zeros - 1) << 40 | (used - 1) << 48


@pytest.mark.parametrize("zeros_first", [0b0000, 0b0001, 0b0110])
@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (64, 2), (128, 1)])
def test_column_mask_makes_zeros(rows: int, parts: int, zeros_first: int) -> None:
    starts, used, zeros = (1, 4, 0, 2), 5, 3
    a, b = make_factor(rows, 16), make_factor(64, 16)
    mask = _describe_mask(zeros, used, starts, zeros_first)
    columns = 64 // parts
    out = multiply(a, b, columns=columns, stationary=".ws", rest=f"%no, {mask}")
    for part in range(parts):
        runs = [True] * zeros + [False] * used if zeros_first >> part & 1 else [False] * used + [True] * zeros
        is_zero = np.array((runs * 64)[starts[part] : starts[part] + columns])
        b[columns * part : columns * (part + 1)][is_zero] = 0
    np.testing.assert_array_equal(np.concatenate(np.split(out, parts), axis=1), multiply_exactly(a, b))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "parts"), [(32, 4), (64, 2), (128, 1)])
def test_column_shift_skips_columns(rows: int, parts: int, turned: bool) -> None:
    """A shift skips the first columns of the right factor; a mask counts the columns of the result."""
    a, b = make_factor(rows, 16), make_factor(80, 16)
    columns, shift = 64 // parts, 11
    column_in_part = np.arange(64) % columns
    is_used_with_mask = column_in_part % (5 + 3) < 5
    for mask, is_used in ((0, np.ones(64, bool)), (_describe_mask(zeros=3, used=5), is_used_with_mask)):
        rest = f"%no, {shift * _SHIFT | mask}"
        out = multiply(a, b, majors=(False, turned), columns=columns, stationary=".ws", rest=rest, product_columns=64)
        expected = multiply_exactly(a, b[shift : shift + 64] * is_used[:, None])
        np.testing.assert_array_equal(np.concatenate(np.split(out, parts), axis=1), expected)


@pytest.mark.parametrize(("rows", "shift", "most"), [(32, 17, 16), (128, 33, 32)])
def test_large_column_shift_is_refused(rows: int, shift: int, most: int) -> None:
    factor = make_factor(128, 16)
    with pytest.raises(TensorMemoryError, match=f"is {shift}; at most {most} is allowed"):
        multiply(factor[:rows], factor[:64], stationary=".ws", columns=rows // 2, rest=f"%no, {shift * _SHIFT}")
