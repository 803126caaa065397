"""``tcgen05.cp``: copies rows of shared memory to lanes of tensor memory; ``shift``: moves rows down by one.

Sources: PTX ISA 9.0, 9.7.16.9.2; for the lanes CUTLASS 4 (``copy_traits_sm100.hpp``, ``SM100_UTCCP``).
The layout of the rows in shared memory is that of a factor. Shifts: 9.7.16.9.3 (elements of 32 bytes, all rows of a
warp except the last); their direction, and that all four warps shift, are from published measurements of a B200
(github.com/cicuvc/nvidia-sass-document, ``notes/sm100/instr/utcshift.md``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import LANES, Array
from ...machine.chunk import Chunk
from ...machine.tensor_memory import LANE_COUNT, split_address
from ...ptx.program import TYPES, Instruction
from ...util.errors import TensorMemoryError, UninitializedTensorReadError
from ..opcode_registry import Step, binds
from ..operands import (
    expect_count,
    expect_modifiers,
    join_modifiers,
    make_address_reader,
    make_array_reader,
    unsupported,
)
from ..single_threads import iter_threads, make_row_reporter
from ..tensor_cores.matrix_rows import PACKED, split_row
from .descriptors import decode_shared
from .issuing_warps import GROUP_SIZES, find_cta_group, note_uncounted, read_group_size, report_descriptors


class _CopyShape(NamedTuple):
    """Shape of a copy: bytes per row, and the lanes that receive the rows, (times that a row is stored, rows)."""

    width: int
    lanes: Array


def _repeat_lanes(lanes: Array, *starts: int) -> Array:
    """Repeat the lanes once per start, shifted by it: ([0, 1], 0, 64) -> [[0, 1], [64, 65]]."""
    return np.array(starts)[:, None] + lanes


_HALF = np.arange(64)
#: Keys: shape and multicast.
_COPIES: dict[frozenset[str], _CopyShape] = {
    frozenset({"128x256b"}): _CopyShape(32, _repeat_lanes(np.arange(128), 0)),
    frozenset({"4x256b"}): _CopyShape(32, _repeat_lanes(32 * np.arange(4), 0)),
    frozenset({"128x128b"}): _CopyShape(16, _repeat_lanes(np.arange(128), 0)),
    frozenset({"64x128b", "warpx2::02_13"}): _CopyShape(16, _repeat_lanes(_HALF, 0, 64)),
    frozenset({"64x128b", "warpx2::01_23"}): _CopyShape(16, _repeat_lanes(_HALF + _HALF // 32 * 32, 0, 32)),
    frozenset({"32x128b", "warpx4"}): _CopyShape(16, _repeat_lanes(np.arange(32), 0, 32, 64, 96)),
}


@binds("tcgen05", having={"cp"})
def _bind_copy(instruction: Instruction) -> Step:
    """Bind ``tcgen05.cp.cta_group.shape{.multicast}{.b8x16.b6x16_p32} [address], descriptor``.

    With ``.b8x16``, elements of 4 or 6 bits in shared memory become bytes in tensor memory.
    """
    copy, packed_bits = _parse_shape(instruction)
    row_count, word_count = copy.lanes.shape[1], copy.width // 4
    expect_count(instruction, 2)
    group_size = read_group_size(instruction)
    target, source = instruction.operands
    readers = [
        make_address_reader(instruction, target, "tensor"),
        make_array_reader(instruction, source, TYPES["u64"]),
    ]

    def copy_rows(chunk: Chunk) -> None:
        report = make_row_reporter(chunk)
        for (place, descriptor_bits), rows in iter_threads(chunk, readers):
            with report_descriptors(chunk):
                descriptor = decode_shared(descriptor_bits)
            places = descriptor.locate_elements(row_count, word_count, 4, transposed=False)
            first_lane, first_column = split_address(place)
            columns = first_column + np.arange(word_count)
            note_uncounted(chunk, len(rows))
            for block in (block for row in rows for block in find_cta_group(chunk, row, group_size)):
                words = chunk.shared.gather_elements(block, places, 4, report)
                if packed_bits:
                    words = _unpack_rows(words, packed_bits)
                for lanes in first_lane + copy.lanes:
                    chunk.tensor.store(np.array(block), lanes[:, None], columns, words, report, is_asynchronous=True)
        chunk.has_written, chunk.spins = True, 0

    return copy_rows


def _parse_shape(instruction: Instruction) -> tuple[_CopyShape, int]:
    """Return the shape of a copy, and the bits of its packed elements in shared memory; 0 if they are not packed."""
    packed_bits = next((PACKED[form] for form in PACKED if f".{form}." in f"{instruction.name}."), 0)
    packed_names = {"b8x16", "b6x16_p32", "b4x16_p64"} if packed_bits else set()
    shape = frozenset(instruction.modifiers[1:]).difference(GROUP_SIZES, packed_names)
    if shape not in _COPIES:
        allowed = join_modifiers(".".join(sorted(known)) for known in _COPIES)
        raise unsupported(instruction, f"its shape is {join_modifiers(sorted(shape))}; allowed are {allowed}")
    return _COPIES[shape], packed_bits


def _unpack_rows(words: Array, bits: int) -> Array:
    """Expand packed elements of the rows ``words`` to bytes. Each 16 bytes have 16 elements, then padding."""
    units = words.view(np.uint8).reshape(len(words), -1, 16)
    return split_row(units[..., : 2 * bits], bits).reshape(len(words), -1).view(np.uint32)


#: Columns that move: an element of 32 bytes.
_COLUMNS = 8
#: Lanes that receive the row of the next lane: all but the last of each warp.
_TARGETS = np.array([lane for lane in range(LANE_COUNT) if lane % LANES < LANES - 1])[:, None]


@binds("tcgen05", having={"shift"})
def _bind_shift(instruction: Instruction) -> Step:
    """Bind ``tcgen05.shift.cta_group.down [address]``."""
    expect_modifiers(instruction, instruction.modifiers, {"shift", "down", *GROUP_SIZES}, {"down"})
    expect_count(instruction, 1)
    group_size = read_group_size(instruction)
    readers = [make_address_reader(instruction, instruction.operands[0], "tensor")]

    def shift_rows(chunk: Chunk) -> None:
        report_error = make_row_reporter(chunk)

        def report(error: Any, *details: Any) -> None:
            if error is not UninitializedTensorReadError:  # unused rows move as well
                report_error(error, *details)

        for (place,), rows in iter_threads(chunk, readers):
            lane, column = split_address(place)
            if lane % LANES:
                raise chunk.make_fault(
                    TensorMemoryError, f"the address has lane {lane}; it must be a multiple of {LANES}"
                )
            if lane:
                raise unsupported(instruction, f"the address has lane {lane}; ptxcount supports only lane 0")
            groups = np.array([find_cta_group(chunk, row, group_size) for row in rows])
            blocks = groups.reshape(-1, 1, 1)
            columns = column + np.arange(_COLUMNS)
            words = chunk.tensor.load(blocks, _TARGETS + 1, columns, report, is_asynchronous=True)
            chunk.tensor.store(blocks, _TARGETS, columns, words, report, is_asynchronous=True)
        chunk.has_written, chunk.spins = True, 0

    return shift_rows
