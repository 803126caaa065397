"""Tensor memory: registers by the figures of the PTX ISA, and faults."""

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxcount.util.errors import KernelFaultError, OutOfBoundsError, TensorMemoryError, UninitializedTensorReadError
from tests.ptxcount.snippets import list_registers
from tests.ptxcount.tcgen05_kernels import (
    COMMIT,
    COMMIT_TO_PAIR,
    FIRST_THREAD,
    FIXED_FIELD,
    LANE,
    MEET,
    WAIT,
    Layout,
    dump,
    fill,
    launch,
    write_kernel,
)

NOTHING = np.zeros(128, np.uint8)


class Shape(NamedTuple):
    """A shape of ``ld`` and ``st``: lanes, then registers of a thread and columns for .x1, and CuTe's layouts.

    A thread's register is at the sum of `threads` and `values`, in words of 32 bits (``copy_traits_sm100.hpp``). The
    next column is one word further, the next lane `columns` words.
    """

    lanes: int
    registers: int
    columns: int
    threads: Layout
    values: Layout


SHAPES = {
    "32x32b": Shape(32, 1, 1, Layout((32,), (1,)), Layout((1,), (0,))),
    "16x64b": Shape(16, 1, 2, Layout((2, 2, 8), (16, 1, 2)), Layout((1,), (0,))),
    "16x128b": Shape(16, 2, 4, Layout((4, 8), (1, 4)), Layout((2,), (32,))),
    "16x256b": Shape(16, 4, 8, Layout((4, 8), (2, 8)), Layout((2, 2), (1, 64))),
}


def _expect_registers(shape: Shape, number: int, first_lane: int) -> Any:
    """Return the words of `fill` in each (thread, register) of a load from `first_lane` on."""
    place = shape.threads.offsets()[:, None] + shape.values.offsets()[None, :]
    lane, column = first_lane + place // shape.columns, place % shape.columns
    repeats = [lane * LANE + column + shape.columns * repeat for repeat in range(number)]
    return np.concatenate(repeats, axis=1).reshape(32, shape.registers * number)


#: Names of shapes, and numbers of repetitions (.x1, .x2, ...) that access at most 128 columns.
NUMBERS = [(name, 1 << power) for name, shape in SHAPES.items() for power in range(8) if shape.columns << power <= 128]


@pytest.mark.parametrize(("name", "number"), NUMBERS)
def test_registers_as_in_the_ptx_isa(name: str, number: int) -> None:
    """A load gets the words of `fill`; a store puts them in the next columns.

    Shapes of 16 lanes access the upper half of the 32 lanes of each warp.
    """
    shape = SHAPES[name]
    count, columns, first_lane = shape.registers * number, shape.columns * number, 32 - shape.lanes
    registers = list_registers("%v", count)
    output = "\n".join(f"st.global.u32 [%out+{4 * k}], %v{k};" for k in range(count))
    body = (
        f"{fill(columns)}add.u32 %r5, %d, %quarter;\nadd.u32 %r5, %r5, {first_lane * LANE};\n"
        f"tcgen05.ld.sync.aligned.{name}.x{number}.b32 {registers}, [%r5];\ntcgen05.wait::ld.sync.aligned;\n"
        f"ld.param.u64 %out, [p1];\nmad.wide.u32 %out, %t, {4 * count}, %out;\n{output}\n"
        f"tcgen05.st.sync.aligned.{name}.x{number}.b32 [%r5+{columns}], {registers};\ntcgen05.wait::st.sync.aligned;\n"
    )
    out = np.zeros((4, 32, count), np.uint32)
    launch(write_kernel(body, columns=256), NOTHING, out)
    for warp in range(4):
        np.testing.assert_array_equal(out[warp], _expect_registers(shape, number, 32 * warp + first_lane))
    dumped = np.zeros((128, 2 * columns), np.uint32)
    if 2 * columns <= 128:  # a load of `dump` has at most 128 columns
        launch(write_kernel(body + dump(2 * columns), columns=256), NOTHING, dumped, unwritten="off")
        stored_lanes = np.arange(128) % 32 >= first_lane
        expected = np.arange(128)[:, None] * LANE + np.arange(columns)
        np.testing.assert_array_equal(dumped[stored_lanes, columns:], expected[stored_lanes])


def test_load_reads_the_quarter_of_its_warp() -> None:
    """All warps use the address of lane 0."""
    body = (
        f"{fill(1)}tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [%d];\n"
        "ld.param.u64 %out, [p1];\nmad.wide.u32 %out, %t, 4, %out;\nst.global.u32 [%out], %v0;\n"
    )
    out = np.zeros(128, np.uint32)
    launch(write_kernel(body), NOTHING, out)
    np.testing.assert_array_equal(out, np.arange(128) * LANE)


def test_upper_lanes_access_columns_at_the_split() -> None:
    """Threads 0 to 15 load columns 4 and 5 of 16 lanes; threads 16 to 31 load the columns 20 further, 24 and 25."""
    body = (
        f"{fill(64)}add.u32 %r5, %d, %quarter;\ntcgen05.ld.sync.aligned.16x32bx2.x2.b32 {{%v0, %v1}}, [%r5+4], 20;\n"
        "ld.param.u64 %out, [p1];\nmad.wide.u32 %out, %t, 8, %out;\nst.global.v2.u32 [%out], {%v0, %v1};\n"
    )
    out = np.zeros((4, 2, 16, 2), np.uint32)
    launch(write_kernel(body), NOTHING, out)
    warp, half, lane, register = np.indices(out.shape)
    np.testing.assert_array_equal(out, (32 * warp + lane) * LANE + 4 + 20 * half + register)


def test_halves_are_packed_and_unpacked() -> None:
    """Register k packs the lower halves of columns 2k and 2k + 1, in which `fill` puts the column.

    The store unpacks the registers 1 and 3, of the columns 2, 3, 6 and 7, into columns 8 to 11.
    """
    body = (
        f"{fill(8)}add.u32 %r5, %d, %quarter;\n"
        "tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {%v0, %v1, %v2, %v3}, [%r5];\n"
        "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r5+8], {%v1, %v3};\n"
        f"tcgen05.wait::st.sync.aligned;\n{dump(16)}"
    )
    out = np.zeros((128, 16), np.uint32)
    launch(write_kernel(body), NOTHING, out, unwritten="off")
    np.testing.assert_array_equal(out[:, 8:12], np.broadcast_to([2, 3, 6, 7], (128, 4)))
    assert not out[:, 12:].any()


@pytest.mark.parametrize("group", [1, 2])
def test_shift_moves_rows(group: int) -> None:
    """A shift moves 32 bytes, here columns 4 to 11, into each row but the last of a warp, from the next row."""
    is_first_thread = f"{FIRST_THREAD}setp.eq.and.u32 %p, %r1, 0, %p;\n"  # of the first block
    commit = COMMIT_TO_PAIR if group == 2 else COMMIT.format(group=1)
    body = (
        f"{fill(16)}{MEET}{is_first_thread}@%p tcgen05.shift.cta_group::{group}.down [%d+4];\n"
        f"{commit}{WAIT}{dump(16)}{MEET}"
    )
    out = np.zeros((group, 128, 16), np.uint32)
    launch(write_kernel(body, group=group), np.zeros(128 * group, np.uint8), out, group, cluster=group)
    lane, column = np.arange(128)[:, None], np.arange(16)
    is_moved = (lane % 32 < 31) & (column >= 4) & (column < 12)
    np.testing.assert_array_equal(out, np.broadcast_to((lane + is_moved) * LANE + column, out.shape))


_LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r5];\n"
_OWN_LANES = "add.u32 %r5, %d, %quarter;\n"
_SECOND_WARP = "setp.eq.u32 %p, %w, 1;\n"
_ALLOC = "@%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], {};\n"
_COPY = f"mov.u64 %a, {FIXED_FIELD};\n@%p tcgen05.cp.cta_group::1.128x128b [%d], %a;\n"
_SHIFT = FIRST_THREAD + "@%p tcgen05.shift.cta_group::1.down [%d+{}];\n"
#: Code, its fault, and a part of the message. The kernel allocates 64 columns before; %p is true in its first warp.
WRONG_KERNELS: list[tuple[str, type[KernelFaultError], str]] = [
    (_OWN_LANES + _LOAD, UninitializedTensorReadError, "never-written tensor memory .* lane 0, column 0"),
    (f"add.u32 %r5, %d, {32 * LANE};\n{_LOAD}", OutOfBoundsError,
     "lanes 32 to 63 .* warp 0 of its block can access lanes 0"),
    (f"{_OWN_LANES}add.u32 %r5, %r5, {16 * LANE};\n{_LOAD}", OutOfBoundsError, "lanes 16 to 47"),
    (f"{_OWN_LANES}add.u32 %r5, %r5, 512;\n{_LOAD}", OutOfBoundsError, "column 512 of 128 lanes and 512 columns"),
    (f"{_OWN_LANES}add.u32 %r5, %r5, 64;\n{_LOAD}", TensorMemoryError, "lane 0, column 64, which is not allocated"),
    (_LOAD.replace("%r5", "64"), TensorMemoryError, "lane 0, column 64, which is not allocated"),
    (_SECOND_WARP + _ALLOC.format(48), TensorMemoryError, "48 columns; it must be a power of two from 32 to 512"),
    (_SECOND_WARP + _ALLOC.format(16), TensorMemoryError, "16 columns; it must be a power of two from 32 to 512"),
    (_SECOND_WARP + _ALLOC.format(512), TensorMemoryError, "512 adjacent columns requested, 448 columns are free"),
    (_SECOND_WARP + _ALLOC.format(32), TensorMemoryError, "32 columns are still allocated when the block ends"),
    ("@%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;\n", TensorMemoryError, "32 columns .* where 64 are"),
    (f"setp.lt.u32 %p, %t, 40;\n{_OWN_LANES}@%p {_LOAD}", TensorMemoryError,
     "warp 1 executes tcgen05.ld.* with 8 of 32 lanes"),
    (f"{FIRST_THREAD}{_COPY}{COMMIT.format(group=1)}bar.sync 0;\n{_OWN_LANES}{_LOAD}", TensorMemoryError,
     "whose tcgen05.commit no thread waited for"),
    (f"{FIRST_THREAD}{_COPY}", TensorMemoryError, "no thread waited for their products"),
    (f"{_SHIFT.format(0)}{COMMIT.format(group=1)}bar.sync 0;\n{_OWN_LANES}{_LOAD}", TensorMemoryError,
     "no thread waited for"),
    (_SHIFT.format(16 * LANE), TensorMemoryError, "lane 16; it must be a multiple of 32"),
    (_SHIFT.format(0).replace("cta_group::1", "cta_group::2"), TensorMemoryError,
     "needs an even number of blocks in a cluster, not 1"),
    (_SHIFT.format(60), TensorMemoryError, "lane 1, column 64, which is not allocated"),
    (f"{fill(8).replace('tcgen05.wait::st.sync.aligned;', '')}bar.sync 0;\n{_SHIFT.format(0)}", TensorMemoryError,
     "written by a tcgen05.st without tcgen05.wait::st"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "error", "text"), WRONG_KERNELS, ids=range(len(WRONG_KERNELS)))
def test_wrong_kernels_are_faults(code: str, error: type[KernelFaultError], text: str) -> None:
    with pytest.raises(error, match=text):
        launch(write_kernel(code, size=2048), np.zeros(2048, np.uint8), np.zeros(1), unwritten="error")


#: When warp 1 relinquishes the permit to allocate, and which allocations the kernel has -> is it a fault?
RELINQUISHING = [
    ("after the first", "first", False), ("after the first", "first and second", True),
    ("before the first", "first", True), ("without any", "none", False),
]  # fmt: skip


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(("when", "allocations", "is_fault"), RELINQUISHING)
def test_relinquish_ends_allocation(when: str, allocations: str, is_fault: bool, group: int) -> None:
    """Columns that are allocated before stay usable."""
    relinquish = f"{_SECOND_WARP}@%p tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;\n"
    body = "" if when == "before the first" else relinquish
    if "second" in allocations:
        body += _SECOND_WARP + _ALLOC.format(32).replace("cta_group::1", f"cta_group::{group}")
    if allocations != "none":
        body += fill(4) + dump(4)
    text = write_kernel(body, group=group)
    if when == "before the first":
        text = text.replace("COPIED: ", f"COPIED: {relinquish}bar.sync 0;\n")
    if allocations == "none":  # the kernel of `write_kernel` allocates, frees, and loads the address
        text = "\n".join(line for line in text.splitlines() if "alloc.cta" not in line and "[base]" not in line)
    out = np.zeros((group, 128, 4), np.uint32)
    with pytest.raises(TensorMemoryError, match=r"alloc after tcgen05\.relinquish") if is_fault else nullcontext():
        launch(text, np.zeros(128 * group, np.uint8), out, group, cluster=group)
        if allocations != "none":
            words = np.arange(128)[:, None] * LANE + np.arange(4)
            np.testing.assert_array_equal(out, np.broadcast_to(words, out.shape))
