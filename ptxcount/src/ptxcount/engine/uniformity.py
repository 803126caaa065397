"""Divergent registers, by the uniformity analysis of ptxas.

ptxas aggregates atomics of a warp only if it can prove a uniform address. A load from a uniform address is uniform,
also in shared and local memory. These rules match the machine code of nvcc 13.0.88 for sm_90 in 96 of 102 kernels; in
the others ptxas folds constants, or uses the result of ``elect``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..ptx.flow import BasicBlock, End, Flow, find_reachable, list_predecessors
from ..ptx.program import CALL_SPACE, Immediate, Instruction, Register, Special, iter_leaves
from .dominators import find_meeting_blocks

#: Prefixes of special registers that are divergent within a warp.
_LANE_REGISTERS = ("%tid", "%laneid", "%lanemask_")
#: Instructions whose result is uniform in a warp, and instructions whose result is divergent.
_UNIFORM_OPCODES = frozenset(("vote", "redux", "activemask"))
_DIVERGENT_OPCODES = frozenset(
    ("atom", "bar", "barrier", "call", "elect", "ldmatrix", "match", "mma", "movmatrix", "tcgen05", "wgmma", "wmma")
)


def find_divergent(code: Sequence[Instruction], flow: Flow) -> set[str]:
    """Find the registers that may differ within a warp; `isa.dispatch` must have bound the instructions."""
    joins, whole_shuffles = _Joins(code, flow), _find_whole_shuffles(code, flow)
    pending, divergent, count = {*joins.guards}, set[str](), -1
    while count < len(divergent):
        count = len(divergent)
        for instruction in code:
            if not instruction.writes <= divergent and _is_divergent(instruction, divergent, whole_shuffles):
                divergent |= instruction.writes
        divergent_branches = {block for block in pending if joins.guards[block] in divergent}
        pending -= divergent_branches
        divergent |= {name for block in divergent_branches for name in joins.find_joined_registers(block)}
    return divergent


def _find_whole_shuffles(code: Sequence[Instruction], flow: Flow) -> set[int]:
    """Return the ``id`` of each shuffle that can read any lane of the warp: operand ``c`` is known to be 31."""

    def sets_31(instruction: Instruction) -> bool:
        return instruction.opcode == "mov" and instruction.operands[1:] == (Immediate(31),) and not instruction.guard

    written_31, written = set[str](), set[str]()
    for instruction in code:
        if sets_31(instruction):
            written_31 |= instruction.writes
        else:
            written |= instruction.writes
    shuffles = set[int]()
    for block in flow.blocks:
        known_31 = written_31 - written
        for instruction in code[block.start : block.stop]:
            last = instruction.operands[3] if instruction.opcode == "shfl" and instruction.operands[3:] else None
            if last == Immediate(31) or (isinstance(last, Register) and last.name in known_31):
                shuffles.add(id(instruction))
            known_31 = known_31 | instruction.writes if sets_31(instruction) else known_31 - instruction.writes
    return shuffles


def _is_divergent(instruction: Instruction, divergent: set[str], whole_shuffles: set[int]) -> bool:
    """Tell if the result of an instruction may differ within a warp; ``divergent`` has the registers found so far."""
    if instruction.guard is not None and instruction.guard.name in divergent:
        return True
    opcode, modifiers, operands = instruction.opcode, instruction.modifiers, instruction.operands
    if opcode in _UNIFORM_OPCODES or (opcode == "match" and "all" in modifiers):
        return False
    if opcode in _DIVERGENT_OPCODES or CALL_SPACE in modifiers:
        return True
    if "idx" in modifiers and id(instruction) in whole_shuffles:
        return isinstance(operands[2], Register) and operands[2].name in divergent
    specials = (leaf.name for operand in operands for leaf in iter_leaves(operand) if isinstance(leaf, Special))
    return not instruction.reads.isdisjoint(divergent) or any(name.startswith(_LANE_REGISTERS) for name in specials)


class _Joins:
    """Registers that become divergent where the paths of a divergent branch join."""

    def __init__(self, code: Sequence[Instruction], flow: Flow) -> None:
        self._flow, self._blocks, self._predecessors = flow, flow.blocks, list_predecessors(flow.blocks)
        self._writes = [
            {name for instruction in code[block.start : block.stop] for name in instruction.writes}
            for block in flow.blocks
        ]
        counts = Counter(name for instruction in code for name in instruction.writes)
        self._rewritten = {name for name, count in counts.items() if count > 1}
        exits = {index for index, block in enumerate(flow.blocks) if _is_only_exit(code, block)}
        #: Predicates of branches, without predicated exits, by the basic block that ends with the branch.
        self.guards: dict[int, str] = {}
        for index, block in enumerate(flow.blocks):
            guard = code[block.stop - 1].guard if block.end is End.BRANCH else None
            if guard is not None and len(set(block.successors)) > 1 and block.successors[-1] not in exits:
                self.guards[index] = guard.name
        #: Registers by a block and the block where its paths meet, if a path leads back before.
        self._joined_in_cycles: dict[tuple[int, int], set[str]] = {}
        self._meeting_block = find_meeting_blocks([block.successors for block in self._blocks]) if self.guards else {}

    def find_joined_registers(self, block: int) -> set[str]:
        """Return the registers that become divergent if lanes diverge at the end of a basic block.

        These registers are written on a path to a join, live there, and written more than once. Joins are the block
        where all paths meet, and blocks before it that both sides of the branch reach. If a path leads back to the
        block before all paths meet, one of the last two conditions is enough: the branch may leave a loop, and lanes
        may leave in different iterations.
        """
        meeting = self._meeting_block.get(block, -1)
        if (block, meeting) in self._joined_in_cycles:
            return self._joined_in_cycles[block, meeting]
        live = self._flow.find_live(frozenset() if meeting < 0 else frozenset((meeting,)))
        successors = self._blocks[block].successors
        sides = [
            find_reachable(lambda index: self._blocks[index].successors, [first], {meeting}) for first in successors
        ]
        region, common = set.union(*sides), set.intersection(*sides)
        written = self._list_written(region)
        if block in region:
            joined = written & (live | self._rewritten)
            cycle = find_reachable(self._predecessors.__getitem__, [block], {meeting}) & region
            self._joined_in_cycles |= {(member, meeting): joined for member in cycle}  # all have the same region
            return joined
        joins = {
            index
            for predecessor in region - common | {block}
            for index in common.intersection(self._blocks[predecessor].successors)
        }
        joined = set[str]()
        for join in joins:
            before_join = find_reachable(self._predecessors.__getitem__, self._predecessors[join], {block}) & region
            joined |= self._list_written(before_join) & self._flow.find_live(frozenset((join,)))
        return (written & live | joined) & self._rewritten

    def _list_written(self, blocks: set[int]) -> set[str]:
        return {name for index in blocks for name in self._writes[index]}


def _is_only_exit(code: Sequence[Instruction], block: BasicBlock) -> bool:
    instructions = code[block.start : block.stop]
    return block.end is End.EXIT and all(i.opcode in ("ret", "exit") and not i.guard for i in instructions)
