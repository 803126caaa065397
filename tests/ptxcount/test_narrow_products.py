"""``mma`` of 4, 6 and 8 bits, with scales of blocks and with sparse factors, against NumPy and ml_dtypes.

Registers are filled by CUTLASS 4's layouts (``mma_traits_sm80.hpp``, ``mma_traits_sm120.hpp``,
``mma_traits_sm120_sparse.hpp``, ``host_reorder.h``), which are written by other rules than the PTX ISA's.
"""

import re
from itertools import product
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

#: Type of an element -> its bits in a register, the shift to its place there, and NumPy's type.
TYPES: dict[str, tuple[int, int, Any]] = {
    "e4m3": (8, 0, ml_dtypes.float8_e4m3fn), "e5m2": (8, 0, ml_dtypes.float8_e5m2),
    "e2m3": (8, 0, ml_dtypes.float6_e2m3fn), "e3m2": (8, 0, ml_dtypes.float6_e3m2fn),
    "e2m1": (8, 2, ml_dtypes.float4_e2m1fn), "f16": (16, 0, np.float16), "bf16": (16, 0, ml_dtypes.bfloat16),
    "tf32": (32, 0, np.float32), "s8": (8, 0, np.int8), "u8": (8, 0, np.uint8), "s4": (4, 0, ml_dtypes.int4),
    "u4": (4, 0, ml_dtypes.uint4),
}  # fmt: skip
SCALE_TYPES = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}


class Form(NamedTuple):
    """``mma`` of 16 rows and 8 columns: types of factors, K, kind, scales of a row, and sparsity."""

    left: str
    right: str
    k: int
    kind: str = ""
    scales: int = 0
    scale: str = "ue8m0"
    sparse: str = ""
    result: str = "f32"
    selector: int = 0
    #: First byte and thread of the scales of the left factor, then of the right one.
    places: tuple[int, int, int, int] = (0, 0, 0, 0)

    def bits(self, name: str) -> int:
        """Return the bits of an element in a register."""
        return 4 if self.kind.startswith("mxf4") else TYPES[name][0]

    def __str__(self) -> str:
        kind = f".kind::{self.kind}" if self.kind else ""
        scaled = f".block_scale.scale_vec::{self.scales}X" if self.scales else ""
        names = [self.result, self.left, self.right, self.result, *([self.scale] if self.scales else [])]
        return f"mma{self.sparse}.sync.aligned.m16n8k{self.k}.row.col{kind}{scaled}.{'.'.join(names)}"


def draw(rng: np.random.Generator, name: str, extent: tuple[int, int]) -> Array:
    low = 0 if name[0] == "u" else -3
    return rng.integers(low, 4, extent).astype(TYPES[name][2])


def pack(form: Form, matrix: Array, name: str, *, left: bool) -> Array:
    """Pack a factor into registers, (registers, lanes), by CuTe's layout of threads and values."""
    bits, outer = form.bits(name), matrix.shape[0]
    per, shift = 32 // bits, 0 if form.bits(name) == 4 else TYPES[name][1]
    threads = Layout((4, 8), (outer * per, 1))
    tiles = matrix.shape[1] // (4 * per)
    values = Layout((per, tiles), (outer, 4 * per * 8))
    if left:
        values = Layout((per, 2, tiles), (outer, 8, 4 * per * outer))
    places = threads.offsets()[:, None] + values.offsets()
    codes = matrix.T.reshape(-1)[places]
    raw = codes.view(f"u{codes.itemsize}").astype(np.uint64) & (2**bits - 1)
    words = (raw.reshape(32, -1, per) << shift << bits * np.arange(per, dtype=np.uint64)).sum(axis=2)
    return np.asarray(words.astype(np.uint32).T)


def sparsify(form: Form, rng: np.random.Generator, matrix: Array) -> tuple[Array, Array]:
    """Zero half of a left factor; return the stored elements and the words of metadata."""
    bits = form.bits(form.left)
    stored, codes = keep_half(rng, matrix, *{4: (8, 2), 32: (2, 1)}.get(bits, (4, 1)))
    words = np.zeros(32, np.uint64)
    count = codes.shape[1]
    for row, column in product(range(16), range(count)):
        code = int(codes[row, column])
        if bits >= 16 and count == 4:  # one thread of a quad
            lane, shift = 4 * (row % 8) + form.selector, 16 * (row // 8) + 4 * column
        elif bits >= 16:  # reorder_meta of 16 bits: groups of 32 rows, the tile that the selector names
            m, k = row + 16 * form.selector, column // 4
            lane, half = m // 32 * 32 + m % 8 * 4 + m % 32 // 8, k
            if lane % 2 != half:
                lane, half = (lane + 1, 0) if half else (lane - 1, 1)
            shift = 16 * half + 4 * (column % 4)
        else:  # ELayout of 8 bits: rows of eight, then words of a row
            lane, shift = 4 * (row % 8) + row // 8 + 2 * (column // 8) + 2 * form.selector, 4 * (column % 8)
        words[lane] |= np.uint64(code << shift)
    return stored, words.astype(np.uint32)


def write_product(form: Form, registers: dict[str, Array]) -> str:
    """Write a kernel of one warp that reads registers, 32 words each, and stores each lane's part of a product."""
    count = 2 if form.result == "f16" else 4
    kind = "f32" if form.result == "f32" else "b32"
    total = sum(map(len, registers.values()))
    load = "".join(f"ld.global.b32 %x{r}, [%rd1+{128 * r}];" for r in range(total))
    first, groups = 0, {}
    for name, part in registers.items():
        groups[name] = list_registers("%x", len(part), first)
        first += len(part)
    rest = f", {groups['metadata'][1:-1]}, {form.selector}" if form.sparse else ""
    for side in (0, 1) if form.scales else ():
        byte, thread = form.places[2 * side : 2 * side + 2]
        rest += f", {groups[f'scale{side}'][1:-1]}, {{{byte}, {thread}}}"
    zeros = f"{{{', '.join(['%z'] * count)}}}"
    body = (
        f"ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 4, %rd1;"
        f"mad.wide.u32 %rd2, %r0, {4 * count}, %rd2; {load} mov.b32 %z, 0;"
        f"{form} {list_registers('%y', count)}, {groups['a']}, {groups['b']}, {zeros}{rest};"
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
    values = out.view({"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.result]).reshape(-1)
    matrix = np.zeros(128, values.dtype)
    places = Layout((4, 8), (32, 1)).offsets()[:, None] + Layout((2, 2), (16, 8)).offsets()
    matrix[places.reshape(-1)] = values
    return matrix.reshape(8, 16).T


NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
ORDERED = ".sp::ordered_metadata"
FORMS = [
    *(Form(a, b, 32, "f8f6f4") for a in NARROW for b in NARROW),
    Form("e2m1", "e3m2", 32, "f8f6f4", result="f16"),
    *(Form(a, b, 32, "mxf8f6f4", 1, places=(2, 1, 3, 2)) for a, b in zip(NARROW, NARROW[2:] + NARROW[:2], strict=True)),
    Form("e2m1", "e2m1", 64, "mxf4", 2, places=(2, 1, 0, 3)),
    Form("e2m1", "e2m1", 64, "mxf4nvf4", 2, places=(0, 0, 2, 1)),
    Form("e2m1", "e2m1", 64, "mxf4nvf4", 4, "ue4m3", places=(0, 1, 0, 1)),
    Form("e2m1", "e2m1", 64, "mxf4nvf4", 4, places=(0, 0, 0, 1)),
    *(Form(t, t, k, sparse=sp, selector=s) for t in ("f16", "bf16") for k, s, sp in ((16, 3, ".sp"), (32, 1, ORDERED))),
    Form("f16", "f16", 32, sparse=".sp", result="f16"),
    Form("tf32", "tf32", 8, sparse=".sp", selector=2), Form("tf32", "tf32", 16, sparse=ORDERED, selector=1),
    *(Form(t, t, k, sparse=".sp", result="s32", selector=s) for t, k, s in (
        ("s8", 32, 1), ("u8", 64, 0), ("s8", 64, 0), ("s4", 64, 1), ("u4", 128, 0))),
    *(Form(a, b, 64, "f8f6f4", sparse=ORDERED) for a, b in zip(NARROW, NARROW[1:] + NARROW[:1], strict=True)),
    Form("e3m2", "e2m1", 64, "mxf8f6f4", 1, sparse=ORDERED, places=(1, 0, 1, 1)),
    Form("e2m1", "e2m1", 128, "mxf4", 2, sparse=ORDERED), Form("e2m1", "e2m1", 128, "mxf4nvf4", 4, "ue4m3", ORDERED),
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
    factors = [a.astype(np.float64), b.astype(np.float64)]
    for side, rows in enumerate((16, 8) if form.scales else ()):
        byte, thread = form.places[2 * side : 2 * side + 2]
        codes = rng.integers(*NEAR_ONE[form.scale], (rows, form.scales))
        words = rng.integers(0, 2**32, 32, dtype=np.uint32).astype(np.uint64)  # bytes that are no scales stay random
        for row, number in product(range(rows), range(form.scales)):
            lane = 4 * (row % 8) + (row // 8 + 2 * thread if rows == 16 else thread)
            shift = 8 * (byte + number)
            words[lane] = words[lane] & ~np.uint64(255 << shift) | np.uint64(int(codes[row, number]) << shift)
        registers[f"scale{side}"] = words.astype(np.uint32)[None]
        scales = codes.astype(np.uint8).view(SCALE_TYPES[form.scale]).astype(np.float64)
        factors[side] *= np.repeat(scales, form.k // form.scales, axis=1)
    return registers, factors[0] @ factors[1].T


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_products_are_exact(form: Form) -> None:
    registers, expected = draw_product(form)
    np.testing.assert_array_equal(run(form, registers).astype(np.float64), expected)


def test_scales_may_be_in_braces() -> None:
    """CUTLASS and cuTile write braces around a register of scales."""
    form = Form("e2m1", "e2m1", 64, "mxf4", 2, places=(2, 1, 0, 3))
    registers, expected = draw_product(form)
    text, count = re.subn(r", (%x\d+), \{", r", {\1}, {", write_product(form, registers))
    assert count == 2
    np.testing.assert_array_equal(run(form, registers, text), expected)


@pytest.mark.parametrize(("form", "why"), [
    (Form("f16", "f16", 32, sparse=ORDERED, selector=2), "the sparsity selector is 2; a number from 0 to 1"),
    (Form("f16", "f16", 32, sparse=ORDERED), "the metadata 0b0000 of a group of elements is undefined"),
    (Form("e2m1", "e2m1", 64, "mxf4", 2, places=(1, 0, 0, 0)),
     "byte-id-a is 1 and thread-id-a is 0; byte-id-a must be 0 or 2, and thread-id-a below 2"),
    (Form("e2m1", "e2m1", 64, "mxf4", 2, places=(0, 0, 1, 3)), "byte-id-b is 1 and thread-id-b is 3"),
    (Form("e2m1", "e2m1", 32), r".e2m1 needs one of .kind::f8f6f4"),
    (Form("e2m1", "e2m1", 32, "mxf4", 2, sparse=ORDERED), "K = 32 does not exist for sparse elements of 4 bits"),
])  # fmt: skip
def test_invalid_products_are_refused(form: Form, why: str) -> None:
    right = form.k * form.bits(form.left) // 128  # registers of 8 columns; sparse rows store half of K
    left = max(right, 2) if form.sparse else 2 * right
    registers = {name: np.zeros((count, 32), np.uint32) for name, count in (("a", left), ("b", right))}
    registers |= {name: np.zeros((1, 32), np.uint32) for name in ("metadata", "scale0", "scale1")}
    with pytest.raises(UnsupportedInstructionError, match=f"'mma.*' is not supported: {why}"):
        run(form, registers)
