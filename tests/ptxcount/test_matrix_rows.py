"""``ldmatrix`` and ``stmatrix`` of 8, 6 and 4 bits against CUTLASS 4's layouts (``copy_traits_sm100.hpp``).

A layout maps threads and their bits to bits of the matrix: of rows in shared memory, and of registers.
"""

from typing import NamedTuple

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from tests.ptxcount.snippets import execute_snippet, list_registers, module
from tests.ptxcount.tcgen05_kernels import Layout

RNG = np.random.default_rng(8)


class RowLayout(NamedTuple):
    """CuTe's layouts of an instruction, in bits of the matrix; a row has 128 bits.

    `rows` maps a thread to the row of its address. A bit of a thread's registers is at the sum of `threads` and
    `values`.
    """

    rows: Layout
    threads: Layout
    values: Layout


_TRANSPOSED = Layout((4, 8), (256, 8))
#: Layouts by ``LDSM_T``, ``LDSM_N`` and ``STSM_T``.
LAYOUTS = {
    "ldmatrix.m16n16.x1.trans": RowLayout(
        Layout((2, 2, 4, 2), (128, 1024, 256, 0)), _TRANSPOSED, Layout((8, 2, 2, 2), (1, 128, 64, 1024))),
    "ldmatrix.m16n16.x2.trans": RowLayout(
        Layout((2, 2, 4, 2), (128, 1024, 256, 2048)), _TRANSPOSED, Layout((8, 2, 2, 4), (1, 128, 64, 1024))),
    **{f"ldmatrix.m8n16.x{n}": RowLayout(
        Layout((8 * n, 4 // n), (128, 0)), Layout((32,), (32,)), Layout((32, n), (1, 1024))) for n in (1, 2, 4)},
    **{f"stmatrix.m16n8.x{n}.trans": RowLayout(
        Layout((8 * n, 4 // n), (128, 0)), _TRANSPOSED, Layout((8, 2, 2, n), (1, 128, 64, 1024))) for n in (1, 2, 4)},
}  # fmt: skip
#: Type -> bits of an element in memory.
_BITS = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
_PACKED = [kind for kind in _BITS if kind != "b8"]
_KINDS = {"m16n16": [*_BITS], "m8n16": _PACKED, "m16n8": ["b8"]}
CASES = [(name, kind) for name in LAYOUTS for kind in _KINDS[name.split(".")[1]]]


def _find_bits(name: str) -> tuple[Array, Array]:
    """Return, for each bit of each thread's registers, the thread that names its row, and its index in the row.

    Both arrays have the shape (32, bits).
    """
    rows, threads, values = LAYOUTS[name]
    places = threads.offsets()[:, None] + values.offsets()
    named_rows = (rows.offsets() // 128).tolist()
    thread_of_row = [named_rows.index(row) for row in range(max(named_rows) + 1)]  # the first, if several name it
    return np.array(thread_of_row)[places // 128], places % 128


def _join_bits(bits: Array) -> Array:
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)


def _pack_rows(content: Array, bits: int) -> Array:
    """Pack elements of ``bits`` bits into rows of 16 bytes; random padding follows."""
    bits_of_elements = np.unpackbits(content[..., None], axis=2, bitorder="little")[..., :bits].reshape(32, -1)
    rows = RNG.integers(0, 256, (32, 16), dtype=np.uint8)
    rows[:, : 2 * bits] = np.packbits(bits_of_elements, axis=1, bitorder="little")
    return rows


def _write_kernel(instruction: str, registers: int) -> str:
    """Write a kernel whose threads copy 32 rows of p0 to shared memory, then load or store matrices.

    Thread t gives the address of row 5 t mod 32. It loads its registers into p1; or it stores those of p1, and the rows
    of shared memory go back to p0.
    """
    names = list_registers("%x", registers)
    body = (
        "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 16, %rd1;"
        f"mad.wide.u32 %rd2, %r0, {4 * registers}, %rd2; mov.u32 %r1, rows; mad.lo.u32 %r2, %r0, 16, %r1;"
        "ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%rd1]; st.shared.v4.b32 [%r2], {%w0, %w1, %w2, %w3};"
        "bar.warp.sync -1; mul.lo.u32 %r3, %r0, 5; and.b32 %r3, %r3, 31; mad.lo.u32 %r3, %r3, 16, %r1;"
    )
    if instruction.startswith("ldmatrix"):
        body += f"\n{instruction} {names}, [%r3];\n"
        body += "".join(f"st.global.b32 [%rd2+{4 * r}], %x{r};" for r in range(registers))
    else:
        body += "".join(f"ld.global.b32 %x{r}, [%rd2+{4 * r}];" for r in range(registers))
        body += f"\n{instruction} [%r3], {names};\nbar.warp.sync -1;"
        body += "ld.shared.v4.b32 {%w0, %w1, %w2, %w3}, [%r2]; st.global.v4.b32 [%rd1], {%w0, %w1, %w2, %w3};"
    return module(body, 2, ".reg .b32 %x<9>, %w<4>; .shared .align 16 .b8 rows[512];")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_as_in_cutlass(name: str, kind: str) -> None:
    """Eight rows take a wavefront."""
    opcode, shape, number, *trans = name.split(".")
    instruction = ".".join([opcode, "sync", "aligned", shape, number, *trans, "shared", kind])
    thread_of_bit, bit_of_row = _find_bits(name)
    registers = thread_of_bit.shape[1] // 32
    content = RNG.integers(0, 2 ** _BITS[kind], (32, 16), dtype=np.uint8)
    words = RNG.integers(0, 2**32, (32, registers), dtype=np.uint32)
    rows = _pack_rows(content, _BITS[kind]) if opcode == "ldmatrix" else np.zeros((32, 16), np.uint8)
    text = _write_kernel(instruction, registers)
    counters = ptxcount.count(text, None, 1, 32, [rows.view(np.uint32), words])
    row_of_bit = (5 * np.arange(32) % 32)[thread_of_bit]
    if opcode == "ldmatrix":
        matrix = np.unpackbits(content, axis=1, bitorder="little")
        np.testing.assert_array_equal(words, _join_bits(matrix[row_of_bit, bit_of_row]))
    else:
        matrix = np.zeros((32, 128), np.uint8)
        matrix[row_of_bit, bit_of_row] = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        np.testing.assert_array_equal(rows, np.packbits(matrix, axis=1, bitorder="little"))
    access = next(a for a in counters.accesses if a.source and instruction in text.splitlines()[a.source.ptx_line - 1])
    row_count = len({*LAYOUTS[name].rows.offsets().tolist()})
    assert (access.space, access.requests, access.wavefronts) == ("shared", 1, row_count // 8)


def test_movmatrix_transposes_a_square_of_halves() -> None:
    """Lane n has the elements 2 * (n % 4) and the next one of row n // 4, in the halves of a word."""
    square = np.arange(64, dtype=np.uint16).reshape(8, 8)
    words, out = square.view(np.uint32).ravel(), np.zeros(32, np.uint32)
    body = """ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 4, %rd1;
        mad.wide.u32 %rd2, %r0, 4, %rd2; ld.global.u32 %r1, [%rd1];
        movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; st.global.u32 [%rd2], %r2;"""
    execute_snippet(module(body, 2), [words, out])
    np.testing.assert_array_equal(out.view(np.uint16).reshape(8, 8), square.T)
