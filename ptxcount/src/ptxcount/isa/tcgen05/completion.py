"""``tcgen05.commit``: an mbarrier arrival when earlier products and copies are complete."""

from __future__ import annotations

from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..hopper.mbarriers import signal_barrier
from ..opcode_registry import Step, binds
from ..operands import expect_count, expect_modifiers, make_reader
from ..single_threads import iter_threads, make_row_reporter
from ..spaces import make_shared_reader
from .issuing_warps import find_pair, read_group

_NAMES = {"commit", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster", "b64",
          "cta_group::1", "cta_group::2"}  # fmt: skip


@binds("tcgen05", having={"commit"})
def _bind_commit(instruction: Instruction) -> Step:
    """Bind ``tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [a]{, r}``.

    ``r`` is the mask of ranks whose mbarriers get an arrival.
    """
    expect_modifiers(instruction, instruction.modifiers, _NAMES, {"mbarrier::arrive::one"})
    group, is_multicast = read_group(instruction), "multicast::cluster" in instruction.modifiers
    expect_count(instruction, 2 if is_multicast else 1)
    readers = [make_shared_reader(instruction, instruction.operands[0])]
    readers += [make_reader(instruction, operand, TYPES["u16"]) for operand in instruction.operands[1:]]

    def commit(chunk: Chunk) -> None:
        report, shared = make_row_reporter(chunk), chunk.shared
        for (place, *mask), rows in iter_threads(chunk, readers):
            for row in rows:
                owner, offset = shared.find_owner(row, place)
                blocks = [owner]
                if mask:
                    first = shared.find_first_block(row)
                    blocks = [first + rank for rank in range(16) if mask[0] >> rank & 1]
                chunk.tensor.commit(find_pair(chunk, row, group), [(block, offset) for block in blocks])
                for block in blocks:
                    signal_barrier(chunk, block, offset, report, arrivals=1)

    return commit
