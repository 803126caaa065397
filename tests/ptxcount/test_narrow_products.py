"""``mma`` of 4, 6 and 8 bits, with scales of blocks and with sparse factors, against NumPy and ml_dtypes.

Registers are filled by CUTLASS 4's layouts (``mma_traits_sm80.hpp``, ``mma_traits_sm120.hpp``,
``mma_traits_sm120_sparse.hpp``, ``host_reorder.h``), which are written by other rules than the PTX ISA's.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import UnsupportedInstructionError
from tests.ptxcount.matrices import keep_half
from tests.ptxcount.small_floats import NEAR_ONE, ml_dtypes
from tests.ptxcount.snippets import list_registers, module
from tests.ptxcount.tcgen05_kernels import Layout


class ElementType(NamedTuple):
    """Type of elements: NumPy's type, bits in a register, and the first of these bits that a code uses."""

    dtype: Any
    bits: int = 8
    first_bit: int = 0


TYPES = {
    "e4m3": ElementType(ml_dtypes.float8_e4m3fn), "e5m2": ElementType(ml_dtypes.float8_e5m2),
    "e2m3": ElementType(ml_dtypes.float6_e2m3fn), "e3m2": ElementType(ml_dtypes.float6_e3m2fn),
    "e2m1": ElementType(ml_dtypes.float4_e2m1fn, first_bit=2), "f16": ElementType(np.float16, 16),
    "bf16": ElementType(ml_dtypes.bfloat16, 16), "tf32": ElementType(np.float32, 32),
    "s8": ElementType(np.int8), "u8": ElementType(np.uint8), "s4": ElementType(ml_dtypes.int4, 4),
    "u4": ElementType(ml_dtypes.uint4, 4),
}  # fmt: skip
SCALE_TYPES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}


class Place(NamedTuple):
    """Operands byte-id and thread-id of a factor's scales: the first byte in a word, and which threads have words."""

    byte: int = 0
    thread: int = 0


class Form(NamedTuple):
    """``mma`` of 16 rows and 8 columns: types of factors, K, kind, scales per row and their type, and sparsity."""

    left: str
    right: str
    k: int
    kind: str = ""
    scales: int = 0
    scale: str = "ue8m0"
    sparse: str = ""
    result: str = "f32"
    selector: int = 0
    left_place: Place = Place()
    right_place: Place = Place()

    def bits(self, name: str) -> int:
        """Return the bits of an element in a register."""
        return 4 if self.is_packed else TYPES[name].bits

    @property
    def is_packed(self) -> bool:
        """True if elements of e2m1 have four bits instead of eight."""
        return self.kind.startswith("mxf4")

    def __str__(self) -> str:
        kind = f".kind::{self.kind}" if self.kind else ""
        scaled = f".block_scale.scale_vec::{self.scales}X" if self.scales else ""
        names = [self.result, self.left, self.right, self.result, *([self.scale] if self.scales else [])]
        return f"mma{self.sparse}.sync.aligned.m16n8k{self.k}.row.col{kind}{scaled}.{'.'.join(names)}"


def draw(rng: np.random.Generator, name: str, extent: tuple[int, int]) -> Array:
    low = 0 if name[0] == "u" else -3
    return rng.integers(low, 4, extent).astype(TYPES[name].dtype)


def pack(form: Form, matrix: Array, name: str, *, left: bool) -> Array:
    """Pack a factor into registers, (registers, lanes), by CuTe's layout of threads and values.

    The layouts add up to row + rows * column of an element.
    """
    bits, first_bit, rows = form.bits(name), 0 if form.is_packed else TYPES[name].first_bit, matrix.shape[0]
    per_word = 32 // bits
    columns = 4 * per_word  # of a register in four threads
    tiles = matrix.shape[1] // columns
    threads = Layout((4, 8), (rows * per_word, 1))
    values = Layout((per_word, tiles), (rows, columns * rows))
    if left:
        values = Layout((per_word, 2, tiles), (rows, 8, columns * rows))
    codes = matrix.T.reshape(-1)[threads.offsets()[:, None] + values.offsets()]
    raw = codes.view(f"u{codes.itemsize}").astype(np.uint64) & (2**bits - 1)
    shifts = first_bit + bits * np.arange(per_word, dtype=np.uint64)
    return np.asarray((raw.reshape(32, -1, per_word) << shifts).sum(axis=2).astype(np.uint32).T)


def sparsify(form: Form, rng: np.random.Generator, matrix: Array) -> tuple[Array, Array]:
    """Zero half of a left factor; return the stored elements and the words of metadata."""
    bits = form.bits(form.left)
    if bits == 4:
        stored, codes = keep_half(rng, matrix, size=8, unit=2)
    else:
        stored, codes = keep_half(rng, matrix, size=2 if bits == 32 else 4)
    words = np.zeros(32, np.uint64)
    for (row, column), code in np.ndenumerate(codes):
        lane, shift = _locate_code(form, codes.shape[1], row, column)
        words[lane] |= np.uint64(int(code) << shift)
    return stored, words.astype(np.uint32)


def _locate_code(form: Form, codes_per_row: int, row: int, column: int) -> tuple[int, int]:
    """Return the lane and the first bit of a code of metadata, of four bits."""
    if form.bits(form.left) < 16:  # ELayout: rows of eight, then words of a row
        return 4 * (row % 8) + row // 8 + 2 * (column // 8 + form.selector), 4 * (column % 8)
    if codes_per_row == 4:  # one thread of a group of four
        return 4 * (row % 8) + form.selector, 16 * (row // 8) + 4 * column
    # reorder_meta, of the tile of 16 rows that the selector names: lanes and halves of words exchange their parity.
    tile_row = row + 16 * form.selector
    lane, half = 4 * (tile_row % 8) + tile_row // 8, column // 4
    lane, half = lane - lane % 2 + half, lane % 2
    return lane, 16 * half + 4 * (column % 4)


def write_product(form: Form, registers: dict[str, Array]) -> str:
    """Write a kernel of one warp that reads registers, 32 words each, and stores each lane's part of a product."""
    count = 2 if form.result == "f16" else 4
    kind = "f32" if form.result == "f32" else "b32"
    total = sum(map(len, registers.values()))
    load = "".join(f"ld.global.b32 %x{r}, [%rd1+{128 * r}];" for r in range(total))
    first, names = 0, {}
    for name, part in registers.items():
        names[name] = list_registers("%x", len(part), first)
        first += len(part)
    rest = f", {names['metadata'].strip('{}')}, {form.selector}" if form.sparse else ""
    if form.scales:
        for name, place in (("left scales", form.left_place), ("right scales", form.right_place)):
            rest += f", {names[name].strip('{}')}, {{{place.byte}, {place.thread}}}"
    zeros = f"{{{', '.join(['%z'] * count)}}}"
    body = (
        f"ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 4, %rd1;"
        f"mad.wide.u32 %rd2, %r0, {4 * count}, %rd2; {load} mov.b32 %z, 0;"
        f"{form} {list_registers('%y', count)}, {names['a']}, {names['b']}, {zeros}{rest};"
        + "".join(f"st.global.b32 [%rd2+{4 * r}], %y{r};" for r in range(count))
    )
    return module(body, 2, f".reg .b32 %x<40>; .reg .{kind} %y<4>, %z;", target="8.5 sm_90")


def run(form: Form, registers: dict[str, Array], text: str = "") -> Array:
    """Execute a product of one warp; return the result, (16, 8). `text` replaces the kernel of `write_product`."""
    words = np.ascontiguousarray(np.concatenate(list(registers.values())))
    out = np.zeros((32, 2 if form.result == "f16" else 4), np.uint32)
    ptxcount.count(text or write_product(form, registers), None, 1, 32, [words, out])
    return assemble_result(form, out)


def assemble_result(form: Form, out: Array) -> Array:
    """Return the result, (16, 8), from each lane's registers of d, by CuTe's layouts of row + 16 * column."""
    values = out.view({"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.result]).reshape(-1)
    matrix = np.zeros(128, values.dtype)
    places = Layout((4, 8), (32, 1)).offsets()[:, None] + Layout((2, 2), (16, 8)).offsets()
    matrix[places.reshape(-1)] = values
    return matrix.reshape(8, 16).T


NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
ORDERED = ".sp::ordered_metadata"
#: Factors of four bits with scales.
_MXF4 = Form("e2m1", "e2m1", 64, "mxf4", scales=2)
_NVF4 = Form("e2m1", "e2m1", 64, "mxf4nvf4", scales=4)
FORMS = [
    *(Form(left, right, 32, "f8f6f4") for left in NARROW for right in NARROW),
    Form("e2m1", "e3m2", 32, "f8f6f4", result="f16"),
    *(Form(left, right, 32, "mxf8f6f4", scales=1, left_place=Place(2, 1), right_place=Place(3, 2))
      for left, right in zip(NARROW, NARROW[2:] + NARROW[:2], strict=True)),
    _MXF4._replace(left_place=Place(2, 1), right_place=Place(0, 3)),
    _NVF4._replace(scales=2, right_place=Place(2, 1)),
    _NVF4._replace(scale="ue4m3", left_place=Place(0, 1), right_place=Place(0, 1)),
    _NVF4._replace(right_place=Place(0, 1)),
    *(Form(name, name, k, sparse=sparse, selector=selector)
      for name in ("f16", "bf16") for k, selector, sparse in ((16, 3, ".sp"), (32, 1, ORDERED))),
    Form("f16", "f16", 32, sparse=".sp", result="f16"),
    Form("tf32", "tf32", 8, sparse=".sp", selector=2), Form("tf32", "tf32", 16, sparse=ORDERED, selector=1),
    *(Form(name, name, k, sparse=".sp", result="s32", selector=selector) for name, k, selector in (
        ("s8", 32, 1), ("u8", 64, 0), ("s8", 64, 0), ("s4", 64, 1), ("u4", 128, 0))),
    *(Form(left, right, 64, "f8f6f4", sparse=ORDERED)
      for left, right in zip(NARROW, NARROW[1:] + NARROW[:1], strict=True)),
    Form("e3m2", "e2m1", 64, "mxf8f6f4", scales=1, sparse=ORDERED, left_place=Place(1, 0), right_place=Place(1, 1)),
    _MXF4._replace(k=128, sparse=ORDERED), _NVF4._replace(k=128, scale="ue4m3", sparse=ORDERED),
]  # fmt: skip


def draw_product(form: Form) -> tuple[dict[str, Array], Array]:
    """Draw the registers of a product; return them and the exact result."""
    rng = np.random.default_rng(form.k)
    a, b = draw(rng, form.left, (16, form.k)), draw(rng, form.right, (8, form.k))
    registers, stored = {}, a
    if form.sparse:
        stored, metadata = sparsify(form, rng, a)
    registers["a"], registers["b"] = pack(form, stored, form.left, left=True), pack(form, b, form.right, left=False)
    if form.sparse:
        registers["metadata"] = metadata[None]
    left, right = a.astype(np.float64), b.astype(np.float64)
    if form.scales:
        registers["left scales"], left_scales = _draw_scales(form, rng, 16, form.left_place)
        registers["right scales"], right_scales = _draw_scales(form, rng, 8, form.right_place)
        left, right = left * left_scales, right * right_scales
    return registers, left @ right.T


def _draw_scales(form: Form, rng: np.random.Generator, rows: int, place: Place) -> tuple[Array, Array]:
    """Draw scales of 16 rows of A or 8 columns of B; return the words, (1, lanes), and the factors, (rows, K)."""
    codes = rng.integers(*NEAR_ONE[form.scale], (rows, form.scales))
    words = rng.integers(0, 2**32, 32, dtype=np.uint32).astype(np.uint64)  # bytes that are no scales stay random
    for (row, number), code in np.ndenumerate(codes):
        thread = row // 8 + 2 * place.thread if rows == 16 else place.thread
        lane, shift = 4 * (row % 8) + thread, 8 * (place.byte + number)
        words[lane] = words[lane] & ~np.uint64(0xFF << shift) | np.uint64(int(code) << shift)
    scales = codes.astype(np.uint8).view(SCALE_TYPES[form.scale]).astype(np.float64)
    return words.astype(np.uint32)[None], np.repeat(scales, form.k // form.scales, axis=1)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_products_are_exact(form: Form) -> None:
    registers, expected = draw_product(form)
    np.testing.assert_array_equal(run(form, registers).astype(np.float64), expected)


def test_scales_may_be_in_braces() -> None:
    """CUTLASS and cuTile write braces around a register of scales."""
    form = _MXF4._replace(left_place=Place(2, 1), right_place=Place(0, 3))
    registers, expected = draw_product(form)
    text, count = re.subn(r", (%x\d+), \{", r", {\1}, {", write_product(form, registers))
    assert count == 2
    np.testing.assert_array_equal(run(form, registers, text), expected)


@pytest.mark.parametrize(("form", "why"), [
    (Form("f16", "f16", 32, sparse=ORDERED, selector=2), "the sparsity selector is 2; it must be 0 or 1"),
    (Form("f16", "f16", 32, sparse=ORDERED), "the metadata 0b0000 of a group of elements is undefined"),
    (_MXF4._replace(left_place=Place(byte=1)),
     "byte-id-a is 1 and thread-id-a is 0; byte-id-a must be 0 or 2, and thread-id-a below 2"),
    (_MXF4._replace(right_place=Place(1, 3)), "byte-id-b is 1 and thread-id-b is 3"),
    (Form("e2m1", "e2m1", 32), r".e2m1 needs one of .kind::f8f6f4"),
    (_MXF4._replace(k=32, sparse=ORDERED), "K is 32; with sparse elements of 4 bits, it must be 64 or 128"),
])  # fmt: skip
def test_invalid_products_are_refused(form: Form, why: str) -> None:
    b_count = 8 * form.k * form.bits(form.left) // 32 // 32  # of words in 32 lanes
    a_count = max(b_count, 2) if form.sparse else 2 * b_count  # 16 rows, of which a sparse factor stores half
    counts = {"a": a_count, "b": b_count, "metadata": 1, "left scales": 1, "right scales": 1}
    with pytest.raises(UnsupportedInstructionError, match=f"'mma.*' cannot be executed: {why}"):
        run(form, {name: np.zeros((count, 32), np.uint32) for name, count in counts.items()})


def test_error_has_the_byte_id_of_the_wrong_warp() -> None:
    """The byte-id of A is 3 times the number of the warp: 0 is allowed, 3 is not."""
    registers, _ = draw_product(_MXF4)
    byte = ".reg .b16 %byte; shr.u32 %r1, %r0, 5; mul.lo.u32 %r1, %r1, 3; cvt.u16.u32 %byte, %r1; mma."
    text = write_product(_MXF4, registers).replace("mma.", byte, 1).replace("{0, 0}", "{%byte, 0}", 1)
    arrays = np.zeros((64, 32), np.uint32), np.zeros((64, 4), np.uint32)
    with pytest.raises(UnsupportedInstructionError, match="byte-id-a is 3 and thread-id-a is 0"):
        ptxcount.count(text, None, 1, 64, arrays)
