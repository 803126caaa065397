"""Paths of threads through the basic blocks of a kernel."""

from collections.abc import Sequence
from typing import NamedTuple

from ..ptx.flow import Flow
from ..ptx.program import Instruction
from .dominators import Dominators, find_meeting_blocks


class Paths(NamedTuple):
    """Basic blocks, the loops among them, and where paths meet and end."""

    #: Instructions of each basic block.
    blocks: list[Sequence[Instruction]]
    successors: list[list[int]]
    #: The position of each basic block in the order of execution.
    rank: list[int]
    dominators: Dominators
    #: Immediate postdominators; -1 is the end of the kernel. Empty without loops.
    meetings: dict[int, int]
    #: Basic blocks in which threads do nothing but end, or go to such a block.
    ends: set[int]


def find_paths(code: Sequence[Instruction], flow: Flow) -> Paths:
    """Find the paths of a kernel."""
    blocks, successors = [code[block.start : block.stop] for block in flow.blocks], [b.successors for b in flow.blocks]
    dominators = Dominators(successors)
    meetings = find_meeting_blocks(successors) if dominators.loops else {}
    ends = set[int]()
    for index in reversed(dominators.order):
        opcodes = {instruction.opcode for instruction in blocks[index]}
        if opcodes <= {"ret", "exit", "bra"} and ends.issuperset(successors[index]):
            ends.add(index)
    return Paths(blocks, successors, flow.rank, dominators, meetings, ends)
