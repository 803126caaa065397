"""Sparse ``wgmma`` against NumPy's product of the whole matrix.

Registers and metadata are filled by CUTLASS 4's layouts (``mma_traits_sm90_gmma.hpp``,
``mma_traits_sm90_gmma_sparse.hpp``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import UnsupportedInstructionError
from tests.ptxcount.matrices import keep_half
from tests.ptxcount.snippets import list_registers, module
from tests.ptxcount.tcgen05_kernels import Layout, lay_out
from tests.ptxcount.tcgen05_products import TYPES, make_factor

RNG = np.random.default_rng(9)
_COLUMNS = 16
#: Bits of an element -> CuTe's layouts of threads and of values of a warpgroup's metadata, over (64 rows, K).
METADATA = {
    8: (Layout((2, 2, 8, 4), (8, 2048, 1, 16)), Layout((32,), (64,))),
    16: (Layout((2, 2, 8, 4), (1024, 0, 1, 16)), Layout((16, 2), (64, 8))),
    32: (Layout((2, 2, 8, 4), (512, 0, 1, 16)), Layout((8, 2), (64, 8))),
}
#: A function that launches a kernel's text with its arrays.
Launcher = Callable[[str, list[Array]], None]


class Form(NamedTuple):
    """A product: types of result and factors, memory of the left factor, sparsity selector, and order."""

    result: str
    left: str
    right: str
    in_registers: bool = False
    selector: int = 0
    #: Order of factors in shared memory: MN-major if true, otherwise K-major.
    turned: bool = False

    @property
    def bits(self) -> int:
        """Bits of an element of the left factor."""
        return 8 * int(np.dtype(TYPES[self.left][0]).itemsize)

    def __str__(self) -> str:
        shape = f"m64n{_COLUMNS}k{512 // self.bits}"
        return f"wgmma.mma_async.sp.sync.aligned.{shape}.{self.result}.{self.left}.{self.right}"


FORMS = [
    Form("f32", "f16", "f16"), Form("f32", "f16", "f16", turned=True), Form("f16", "f16", "f16", True, 1),
    Form("f32", "bf16", "bf16", True), Form("f32", "bf16", "bf16", selector=1),
    Form("f32", "tf32", "tf32", True), Form("f32", "tf32", "tf32", selector=1),
    Form("f32", "e4m3", "e5m2"), Form("f16", "e5m2", "e4m3", True), Form("s32", "s8", "u8"),
    Form("s32", "u8", "u8", True),
]  # fmt: skip


def write_product(form: Form, size: int, right: int, descriptors: tuple[int, int]) -> str:
    """Write a kernel of a warpgroup that copies factors to shared memory, multiplies, and stores each thread's words.

    Factors have `size` bytes, and the right one begins at byte `right`. `descriptors` lack the start addresses.
    """
    count = _COLUMNS // 4 if form.result == "f16" else _COLUMNS // 2
    copies = "".join(f"ld.global.b32 %r1, [%rd1+{at}];\nst.shared.b32 [%r2+{at}], %r1;\n" for at in range(0, size, 512))
    loads = "".join(f"ld.global.b32 %a{k}, [%rd3+{512 * k}];\n" for k in range(4))
    left = "{%a0, %a1, %a2, %a3}" if form.in_registers else "%rd5"
    constants = "" if form.result == "s32" else ", -1, 1"
    if form.left in ("f16", "bf16"):
        constants += f", {form.turned:d}" * (1 if form.in_registers else 2)
    body = (
        "".join(f"ld.param.u64 %rd{k + 1}, [p{k}];\nmad.wide.u32 %rd{k + 1}, %r0, 4, %rd{k + 1};\n" for k in range(4))
        + f"mov.u32 %r3, s;\nmad.lo.u32 %r2, %r0, 4, %r3;\n{copies}{loads}ld.global.b32 %r4, [%rd2];\n"
        "fence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r3, %r3, 4;\ncvt.u64.u32 %rd5, %r3;\n"
        f"add.u64 %rd6, %rd5, {descriptors[1] + (right >> 4)};\nadd.u64 %rd5, %rd5, {descriptors[0]};\n"
        + "".join(f"mov.b32 %d{k}, 0;\n" for k in range(count))
        + "setp.ne.u32 %p1, %r0, %r0;\nwgmma.fence.sync.aligned;\n"
        f"{form} {list_registers('%d', count)}, {left}, %rd6, %r4, {form.selector}, %p1{constants};\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        + "".join(f"st.global.b32 [%rd4+{512 * k}], %d{k};\n" for k in range(count))
    )
    kind = "f32" if form.result == "f32" else "b32"
    declared = f".shared .align 1024 .b8 s[{size}];\n.reg .b32 %a<4>;\n.reg .{kind} %d<{count}>;"
    return module(body, 4, declared, target="8.4 sm_90a")


def pack(matrix: Array) -> Array:
    """Pack a stored left factor into registers, (registers, threads)."""
    per = 4 // matrix.itemsize
    threads, values = Layout((4, 8, 4), (64 * per, 1, 16)), Layout((per, 2, 2), (64, 8, 256 * per))
    elements = matrix.T.reshape(-1)[threads.offsets()[:, None] + values.offsets()]
    return np.ascontiguousarray(np.ascontiguousarray(elements).view(np.uint32).T)


def encode_metadata(form: Form, codes: Array) -> Array:
    """Return each thread's word of metadata; words of threads that are not selected are random."""
    threads, values = METADATA[form.bits]
    size = 2 if form.bits == 32 else 4
    places = threads.offsets()[:, None] + values.offsets()[::size]
    shifts = 4 * np.arange(places.shape[1])
    words = (codes[places % 64, places // 64 // size] << shifts).sum(axis=1)
    is_unselected = (np.arange(128) % 4 // 2 != form.selector) & (form.bits > 8)  # one pair of each quad is selected
    return np.where(is_unselected, RNG.integers(0, 2**32, 128), words).astype(np.uint32)


def _launch(text: str, arrays: list[Array]) -> None:
    ptxcount.count(text, "snippet", 1, 128, arrays)


def run(form: Form, stored: Array, b: Array, words: Array, launch: Launcher = _launch) -> Array:
    left, right = (lay_out(matrix, "32" if form.turned else "64", mn_major=form.turned) for matrix in (stored, b))
    image = np.concatenate([left.image, right.image])
    descriptors = left.descriptor ^ 1 << 46, right.descriptor ^ 1 << 46  # the bit is set only for tcgen05
    text = write_product(form, len(image), len(left.image), descriptors)
    out = np.zeros((_COLUMNS // 4 if form.result == "f16" else _COLUMNS // 2, 128), np.uint32)
    launch(text, [image, words, pack(stored), out])
    kind = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[form.result]
    places = Layout((4, 8, 4), (128, 1, 16)).offsets()[:, None]
    places = places + Layout((2, 2, _COLUMNS // 8), (64, 8, 512)).offsets()
    matrix = np.zeros(64 * _COLUMNS)
    matrix[places] = np.ascontiguousarray(out.T).view(kind)
    return matrix.reshape(_COLUMNS, 64).T


def check_product(form: Form, launch: Launcher = _launch) -> None:
    """Assert that a product equals NumPy's exactly; all numbers are small."""
    products = 512 // form.bits
    a, b = make_factor(64, products, form.left), make_factor(_COLUMNS, products, form.right)
    stored, codes = keep_half(RNG, a, 2 if form.bits == 32 else 4)
    sign = 1 if form.result == "s32" else -1
    expected = sign * (a.astype(np.float64) @ b.astype(np.float64).T)
    np.testing.assert_array_equal(run(form, stored, b, encode_metadata(form, codes), launch), expected)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sparse_products_are_exact(form: Form) -> None:
    check_product(form)


def test_block_without_a_product() -> None:
    def launch(text: str, arrays: list[Array]) -> None:
        jump = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;\n"
        text = text.replace("ld.param", f"{jump}ld.param", 1).replace("ret;", "DONE: ret;")
        ptxcount.count(text, "snippet", 2, 128, arrays, unwritten="error")

    check_product(Form("f32", "f16", "f16"), launch)


@pytest.mark.parametrize(("form", "word", "why"), [
    (Form("f32", "f16", "f16", selector=2), 0x44444444, "the sparsity selector is 2; a number from 0 to 1"),
    (Form("f32", "e4m3", "e4m3", selector=1), 0x44444444, "the sparsity selector is 1; a number from 0 to 0"),
    (Form("f32", "f16", "f16"), 0x44444454, "the metadata 0b0101 of a group of elements is undefined"),
    (Form("f32", "tf32", "tf32"), 0x44444494, "the metadata 0b1001 of a group of elements is undefined"),
])  # fmt: skip
def test_undefined_products_are_refused(form: Form, word: int, why: str) -> None:
    """A code of metadata, 0x4, keeps elements 0 and 1 of four; 0x5 has equal indices, and 0x9 is undefined for tf32."""
    stored, b = make_factor(64, 256 // form.bits, form.left), make_factor(_COLUMNS, 512 // form.bits, form.right)
    with pytest.raises(UnsupportedInstructionError, match=why):
        run(form, stored, b, np.full(128, word, np.uint32))
