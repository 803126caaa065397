"""``ldmatrix`` and ``stmatrix`` of 8, 6 and 4 bits against CUTLASS 4's layouts (``copy_traits_sm100.hpp``).

A layout maps threads and their bits to bits of the matrix: of rows in shared memory, and of registers.
"""

import numpy as np
import pytest

import ptxcount
from ptxcount.lanes.warps import Array
from tests.ptxcount.snippets import list_registers, module
from tests.ptxcount.tcgen05_kernels import Layout

RNG = np.random.default_rng(8)
_TURNED = Layout((4, 8), (256, 8))
#: Row of 16 bytes of each thread, and bits of each thread's registers, by ``LDSM_T``, ``LDSM_N`` and ``STSM_T``.
LAYOUTS: dict[str, tuple[Layout, Layout, Layout]] = {
    "ldmatrix.m16n16.x1.trans": (
        Layout((2, 2, 4, 2), (128, 1024, 256, 0)), _TURNED, Layout((8, 2, 2, 2), (1, 128, 64, 1024))),
    "ldmatrix.m16n16.x2.trans": (
        Layout((2, 2, 4, 2), (128, 1024, 256, 2048)), _TURNED, Layout((8, 2, 2, 4), (1, 128, 64, 1024))),
    **{f"ldmatrix.m8n16.x{n}": (
        Layout((8 * n, 4 // n), (128, 0)), Layout((32,), (32,)), Layout((32, n), (1, 1024))) for n in (1, 2, 4)},
    **{f"stmatrix.m16n8.x{n}.trans": (
        Layout((8 * n, 4 // n), (128, 0)), _TURNED, Layout((8, 2, 2, n), (1, 128, 64, 1024))) for n in (1, 2, 4)},
}  # fmt: skip
_PACKED = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
CASES = [(name, kind) for name in LAYOUTS for kind in _PACKED
         if (kind != "b8" if "m8n16" in name else kind == "b8" or name[0] == "l")]  # fmt: skip


def _find_bits(name: str) -> tuple[Array, Array]:
    """Return, for each bit of each thread's registers, the thread that names its row, and its index in the row.

    Both arrays have the shape (32, bits).
    """
    rows, threads, values = LAYOUTS[name]
    places = threads.offsets()[:, None] + values.offsets()
    owners = {int(first) // 128: thread for thread, first in reversed([*enumerate(rows.offsets())])}
    return np.vectorize(owners.__getitem__)(places // 128), places % 128


def _join_bits(bits: Array) -> Array:
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)


def _pack_rows(content: Array, bits: int) -> Array:
    """Pack elements of ``bits`` bits into rows of 16 bytes; random padding follows."""
    bits_of_elements = np.unpackbits(content[..., None], axis=2, bitorder="little")[..., :bits].reshape(32, -1)
    rows = RNG.integers(0, 256, (32, 16), dtype=np.uint8)
    rows[:, : 2 * bits] = np.packbits(bits_of_elements, axis=1, bitorder="little")
    return rows


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_as_in_cutlass(name: str, kind: str) -> None:
    """Thread t gives the address of row 5 t mod 32. Eight rows take a wavefront."""
    opcode, shape, number, *trans = name.split(".")
    rows, bits = _find_bits(name)
    count = rows.shape[1] // 32
    registers = list_registers("%x", count)
    instruction = ".".join([opcode, "sync", "aligned", shape, number, *trans, "shared", kind])
    content = RNG.integers(0, 2 ** _PACKED[kind], (32, 16), dtype=np.uint8)
    words = RNG.integers(0, 2**32, (32, count), dtype=np.uint32)
    start = _pack_rows(content, _PACKED[kind]) if opcode == "ldmatrix" else np.zeros((32, 16), np.uint8)
    body = (
        "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mad.wide.u32 %rd1, %r0, 16, %rd1;"
        f"mad.wide.u32 %rd2, %r0, {4 * count}, %rd2; mov.u32 %r1, rows; mad.lo.u32 %r2, %r0, 16, %r1;"
        "ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%rd1]; st.shared.v4.b32 [%r2], {%w0, %w1, %w2, %w3};"
        "bar.warp.sync -1; mul.lo.u32 %r3, %r0, 5; and.b32 %r3, %r3, 31; mad.lo.u32 %r3, %r3, 16, %r1;"
    )
    if opcode == "ldmatrix":
        body += f"\n{instruction} {registers}, [%r3];\n"
        body += "".join(f"st.global.b32 [%rd2+{4 * r}], %x{r};" for r in range(count))
    else:
        body += "".join(f"ld.global.b32 %x{r}, [%rd2+{4 * r}];" for r in range(count))
        body += f"\n{instruction} [%r3], {registers};\nbar.warp.sync -1;"
        body += "ld.shared.v4.b32 {%w0, %w1, %w2, %w3}, [%r2]; st.global.v4.b32 [%rd1], {%w0, %w1, %w2, %w3};"
    text = module(body, 2, ".reg .b32 %x<9>, %w<4>; .shared .align 16 .b8 rows[512];")
    counters = ptxcount.count(text, None, 1, 32, [start.view(np.uint32), words])
    named = np.arange(32) * 5 % 32  # row in memory of each thread's address
    if opcode == "ldmatrix":
        matrix = np.unpackbits(content, axis=1, bitorder="little")
        np.testing.assert_array_equal(words, _join_bits(matrix[named[rows], bits]))
    else:
        matrix = np.zeros((32, 128), np.uint8)
        matrix[named[rows], bits] = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        np.testing.assert_array_equal(start, np.packbits(matrix, axis=1, bitorder="little"))
    access = next(a for a in counters.accesses if a.source and instruction in text.splitlines()[a.source.ptx_line - 1])
    row_count = len({*LAYOUTS[name][0].offsets().tolist()})
    assert (access.space, access.requests, access.wavefronts) == ("shared", 1, row_count // 8)
