"""``tcgen05.shift``: moves rows of tensor memory down by one.

Sources: PTX ISA 9.0, 9.7.16.9.3 (elements of 32 bytes, all rows of a warp except the last). The direction, and the
shift of all four warps, are from published measurements of a B200 (github.com/cicuvc/nvidia-sass-document,
``notes/sm100/instr/utcshift.md``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lanes.warps import LANES
from ...machine.chunk import Chunk
from ...machine.tensor_memory import LANE_COUNT, split_address
from ...ptx.program import Instruction
from ...util.errors import TensorMemoryError, UninitializedTensorReadError
from ..opcode_registry import Step, binds
from ..operands import expect_count, expect_modifiers, make_address_reader, unsupported
from ..single_threads import iter_threads, make_row_reporter
from .issuing_warps import GROUP_SIZES, find_cta_group, read_group_size

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
                raise chunk.make_fault(TensorMemoryError, f"address with lane {lane}; a multiple of {LANES} is needed")
            if lane:
                raise unsupported(instruction, f"address with lane {lane}; only lane 0 is supported")
            groups = np.array([find_cta_group(chunk, row, group_size) for row in rows])
            blocks = groups.reshape(-1, 1, 1)
            columns = column + np.arange(_COLUMNS)
            words = chunk.tensor.load(blocks, _TARGETS + 1, columns, report, is_asynchronous=True)
            chunk.tensor.store(blocks, _TARGETS, columns, words, report, is_asynchronous=True)
        chunk.has_written, chunk.spins = True, 0

    return shift_rows
