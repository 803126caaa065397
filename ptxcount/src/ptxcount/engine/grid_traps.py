"""Traps of grid barriers: cooperative groups execute ``trap`` in a launch without a workspace for the barrier."""

from collections.abc import Sequence

from ..machine.special_registers import GRID_REGISTERS
from ..ptx.flow import End, Flow, find_reachable, list_predecessors
from ..ptx.program import Instruction, Special, iter_leaves


def find_grid_traps(code: Sequence[Instruction], flow: Flow) -> list[int]:
    """Return the indices of the traps that run only if a test of the grid registers (`GRID_REGISTERS`) fails.

    Debug builds keep variables in memory. So a test of a value from local or generic memory counts, too.
    """
    grid_registers = _find_grid_dependent_registers(code)
    traps = [index for index, instruction in enumerate(code) if instruction.opcode == "trap"]
    return [index for index in traps if not _find_guards(code, flow, index).isdisjoint(grid_registers)]


def _find_grid_dependent_registers(code: Sequence[Instruction]) -> set[str]:
    dependent, size = set[str](), -1
    while size < len(dependent):
        size = len(dependent)
        for instruction in code:
            if _may_read_grid_register(instruction) or not instruction.reads.isdisjoint(dependent):
                dependent |= instruction.writes
    return dependent


def _may_read_grid_register(instruction: Instruction) -> bool:
    if instruction.opcode == "ld":
        return {"global", "shared", "const", "param"}.isdisjoint(instruction.modifiers)
    leaves = (leaf for operand in instruction.operands for leaf in iter_leaves(operand))
    return any(isinstance(leaf, Special) and leaf.name in GRID_REGISTERS for leaf in leaves)


def _find_guards(code: Sequence[Instruction], flow: Flow, trap: int) -> set[str]:
    """Return the guard of a trap; for a trap without a guard, the guards of the nearest branches before it."""
    own_guard = code[trap].guard
    if own_guard:
        return {own_guard.name}
    branch_guards: dict[int, str] = {}
    for index, block in enumerate(flow.blocks):
        guard = code[block.stop - 1].guard
        if block.end is End.BRANCH and guard:
            branch_guards[index] = guard.name
    predecessors = list_predecessors(flow.blocks)
    start = next(index for index, block in enumerate(flow.blocks) if block.start <= trap < block.stop)
    before = find_reachable(lambda index: () if index in branch_guards else predecessors[index], [start])
    return {branch_guards[index] for index in before & branch_guards.keys()}
