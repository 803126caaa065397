"""Sparse ``wgmma`` against NumPy's product of the whole matrix.

Registers and metadata are filled by CUTLASS 4's layouts (``mma_traits_sm90_gmma.hpp``,
``mma_traits_sm90_gmma_sparse.hpp``).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from ptxcount.util.errors import UninitializedReadError, UnsupportedInstructionError
from tests.ptxcount.matrices import keep_half
from tests.ptxcount.snippets import list_registers, module
from tests.ptxcount.tcgen05_kernels import FIXED_FIELD, Layout, join_images, lay_out
from tests.ptxcount.tcgen05_products import DTYPES, make_factor

RNG = np.random.default_rng(9)
_COLUMNS = 16
#: Bits of an element -> CuTe's layouts of the threads, and of each thread's values, of a warpgroup's metadata.
#: Their sum is row + 64 * column of an element of the left factor.
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
        return 8 * int(np.dtype(DTYPES[self.left]).itemsize)

    @property
    def k(self) -> int:
        """Elements in a row of the left factor; half of them are stored."""
        return 64 * 8 // self.bits

    @property
    def group(self) -> int:
        """Elements that share a code of the metadata."""
        return 2 if self.bits == 32 else 4

    @property
    def result_words(self) -> int:
        """Words of a thread's 64 x 16 / 128 elements of the result."""
        return _COLUMNS // 4 if self.result == "f16" else _COLUMNS // 2

    def __str__(self) -> str:
        shape = f"m64n{_COLUMNS}k{self.k}"
        return f"wgmma.mma_async.sp.sync.aligned.{shape}.{self.result}.{self.left}.{self.right}"


FORMS = [
    Form("f32", "f16", "f16"), Form("f32", "f16", "f16", turned=True),
    Form("f16", "f16", "f16", in_registers=True, selector=1),
    Form("f32", "bf16", "bf16", in_registers=True), Form("f32", "bf16", "bf16", selector=1),
    Form("f32", "tf32", "tf32", in_registers=True), Form("f32", "tf32", "tf32", selector=1),
    Form("f32", "e4m3", "e5m2"), Form("f16", "e5m2", "e4m3", in_registers=True), Form("s32", "s8", "u8"),
    Form("s32", "u8", "u8", in_registers=True),
]  # fmt: skip


def write_product(form: Form, size: int, descriptors: Sequence[int]) -> str:
    """Write a kernel of a warpgroup that copies factors to shared memory, multiplies, and stores each thread's words.

    Factors have `size` bytes. `descriptors` are relative to the address of the first. Products of floats are negated:
    the constant -1 scales the left factor, and 1 the right one.
    """
    count = form.result_words
    copies = "".join(f"ld.global.b32 %r1, [%rd1+{at}];\nst.shared.b32 [%r2+{at}], %r1;\n" for at in range(0, size, 512))
    loads = "".join(f"ld.global.b32 %a{k}, [%rd3+{512 * k}];\n" for k in range(4))
    left = "{%a0, %a1, %a2, %a3}" if form.in_registers else "%rd5"
    constants = "" if form.result == "s32" else ", -1, 1"
    if form.left in ("f16", "bf16"):  # whether each factor in shared memory is MN-major
        constants += f", {form.turned:d}" * (1 if form.in_registers else 2)
    body = (
        "".join(f"ld.param.u64 %rd{k + 1}, [p{k}];\nmad.wide.u32 %rd{k + 1}, %r0, 4, %rd{k + 1};\n" for k in range(4))
        + f"mov.u32 %r3, s;\nmad.lo.u32 %r2, %r0, 4, %r3;\n{copies}{loads}ld.global.b32 %r4, [%rd2];\n"
        "fence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r3, %r3, 4;\ncvt.u64.u32 %rd5, %r3;\n"
        f"add.u64 %rd6, %rd5, {descriptors[1]};\nadd.u64 %rd5, %rd5, {descriptors[0]};\n"
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
    """Pack a stored left factor into registers, (registers, threads).

    CuTe's layouts of threads and of a thread's elements add up to row + 64 * column.
    """
    per_word = 4 // matrix.itemsize
    threads, values = Layout((4, 8, 4), (64 * per_word, 1, 16)), Layout((per_word, 2, 2), (64, 8, 256 * per_word))
    elements = matrix.T.reshape(-1)[threads.offsets()[:, None] + values.offsets()]
    return np.ascontiguousarray(np.ascontiguousarray(elements).view(np.uint32).T)


def encode_metadata(form: Form, codes: Array) -> Array:
    """Return each thread's word of metadata; words of threads that are not selected are random."""
    threads, values = METADATA[form.bits]
    places = threads.offsets()[:, None] + values.offsets()[:: form.group]
    shifts = 4 * np.arange(places.shape[1])
    words = (codes[places % 64, places // 64 // form.group] << shifts).sum(axis=1)
    pair_of_quad = np.arange(128) % 4 // 2
    is_selected = (pair_of_quad == form.selector) | (form.bits == 8)
    return np.where(is_selected, words, RNG.integers(0, 2**32, 128)).astype(np.uint32)


def _launch(text: str, arrays: list[Array]) -> None:
    ptxcount.count(text, "snippet", 1, 128, arrays)


def run(form: Form, stored: Array, b: Array, words: Array, launch: Launcher = _launch) -> Array:
    """Multiply stored elements with metadata `words` by b.T; return the result, (64, columns)."""
    factors = [lay_out(matrix, "32" if form.turned else "64", mn_major=form.turned) for matrix in (stored, b)]
    image, descriptors = join_images(factors)
    text = write_product(form, len(image), [descriptor ^ FIXED_FIELD for descriptor in descriptors])
    out = np.zeros((form.result_words, 128), np.uint32)
    launch(text, [image, words, pack(stored), out])
    kind = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[form.result]
    threads, values = Layout((4, 8, 4), (128, 1, 16)), Layout((2, 2, _COLUMNS // 8), (64, 8, 512))
    matrix = np.zeros(64 * _COLUMNS)
    matrix[threads.offsets()[:, None] + values.offsets()] = np.ascontiguousarray(out.T).view(kind)
    return matrix.reshape(_COLUMNS, 64).T


def check_product(form: Form, launch: Launcher = _launch) -> None:
    """Assert that a product equals NumPy's exactly; all numbers are small."""
    a, b = make_factor(64, form.k, form.left), make_factor(_COLUMNS, form.k, form.right)
    stored, codes = keep_half(RNG, a, form.group)  # the other half of `a` becomes 0
    sign = 1 if form.result == "s32" else -1
    expected = sign * (a.astype(np.float64) @ b.astype(np.float64).T)
    np.testing.assert_array_equal(run(form, stored, b, encode_metadata(form, codes), launch), expected)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sparse_products_are_exact(form: Form) -> None:
    check_product(form)


def test_block_without_a_product() -> None:
    """Of two blocks, the first jumps to the end; the second stores the result."""

    def launch(text: str, arrays: list[Array]) -> None:
        jump = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;\n"
        text = text.replace("ld.param", f"{jump}ld.param", 1).replace("ret;", "DONE: ret;")
        ptxcount.count(text, "snippet", 2, 128, arrays, unwritten="error")

    check_product(Form("f32", "f16", "f16"), launch)


def test_unwritten_factor_is_a_fault_of_its_block() -> None:
    """Of two blocks, the second does not write its factors."""

    def launch(text: str, arrays: list[Array]) -> None:
        is_second = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 1;\n"
        text = text.replace("ld.param", f"{is_second}ld.param", 1).replace("st.shared", "@!%p1 st.shared")
        ptxcount.count(text, "snippet", 2, 128, arrays, unwritten="error")

    with pytest.raises(UninitializedReadError, match=r"block \(1, 0, 0\), thread \(0, 0, 0\): matrix element"):
        check_product(Form("f32", "f16", "f16"), launch)


@pytest.mark.parametrize(("form", "code", "why"), [
    (Form("f32", "f16", "f16", selector=2), 0b0100, "the sparsity selector is 2; it must be 0 or 1"),
    (Form("f32", "e4m3", "e4m3", selector=1), 0b0100, "the sparsity selector is 1; it must be 0"),
    (Form("f32", "f16", "f16"), 0b0101, "the metadata 0b0101 of a group of elements is undefined"),
    (Form("f32", "tf32", "tf32"), 0b1001, "the metadata 0b1001 of a group of elements is undefined"),
])  # fmt: skip
def test_undefined_products_are_refused(form: Form, code: int, why: str) -> None:
    """A code has two indices of two bits. 0b0100 keeps elements 0 and 1 of four; 0b0101 has equal indices.

    Of the eight codes in a word of metadata, the second is `code`, the others are 0b0100.
    """
    stored, b = make_factor(64, form.k // 2, form.left), make_factor(_COLUMNS, form.k, form.right)
    word = 0x44444404 | code << 4
    with pytest.raises(UnsupportedInstructionError, match=why):
        run(form, stored, b, np.full(128, word, np.uint32))
