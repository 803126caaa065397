"""``tcgen05.commit``: an mbarrier arrival when earlier products and copies are complete."""

from __future__ import annotations

from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ..hopper.mbarriers import signal_barrier
from ..opcode_registry import Step, binds
from ..operands import expect_count, expect_modifiers, make_reader
from ..single_threads import iter_threads, make_row_reporter
from ..spaces import make_shared_reader
from .issuing_warps import find_cta_group, read_group_size

_NAMES = {"commit", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster", "b64",
          "cta_group::1", "cta_group::2"}  # fmt: skip


@binds("tcgen05", having={"commit"})
def _bind_commit(instruction: Instruction) -> Step:
    """Bind ``tcgen05.commit.cta_group.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [a]{, mask}``.

    ``mask`` has the ranks of the blocks whose mbarriers, at the address ``a``, get an arrival.
    """
    expect_modifiers(instruction, instruction.modifiers, _NAMES, {"mbarrier::arrive::one"})
    group_size, is_multicast = read_group_size(instruction), "multicast::cluster" in instruction.modifiers
    expect_count(instruction, 2 if is_multicast else 1)
    readers = [make_shared_reader(instruction, instruction.operands[0])]
    readers += [make_reader(instruction, operand, TYPES["u16"]) for operand in instruction.operands[1:]]

    def commit(chunk: Chunk) -> None:
        report, shared = make_row_reporter(chunk), chunk.shared
        for (place, *mask), rows in iter_threads(chunk, readers):
            for row in rows:
                owner, offset = shared.find_owner(row, place)
                signalled = [owner]
                if mask:
                    first = shared.find_first_block(row)
                    signalled = [first + rank for rank in range(16) if mask[0] >> rank & 1]
                issuers = find_cta_group(chunk, row, group_size)
                chunk.tensor.commit(issuers, [(block, offset) for block in signalled])
                for block in signalled:
                    signal_barrier(chunk, block, offset, report, arrivals=1)

    return commit
