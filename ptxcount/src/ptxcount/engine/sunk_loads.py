"""Loads of shared memory that ptxas moves behind the exit of other threads (machine code of nvcc 13.0.88 for sm_90).

If a kernel ends with a guarded store, machine code lets the threads that do not store exit first. A load follows this
exit if the store alone uses its value, directly or after operations of one register each. So in a reduction, the
thread that stores the sum alone loads it. There is no such exit behind a branch that ptxas makes of guarded stores.
"""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from ..ptx.flow import BasicBlock, End
from ..ptx.program import Immediate, Instruction, Operand, Register, iter_leaves
from .shared_accesses import breaks_loads

_STORES = frozenset(("st", "red", "atom"))
#: Opcodes of one machine instruction, which ptxas moves if exactly one operand is a register.
_MOVED = frozenset((
    "mov", "not", "abs", "brev", "bfind", "clz", "add", "sub", "mul", "mul24", "and", "or", "xor", "shl", "shr", "bfe",
    "min", "max", "cvt",
))  # fmt: skip
#: Further names of such instructions.
_MOVED_NAMES = frozenset(
    ("div.full.f32", "neg.f32", "ex2.approx.ftz.f32", "rcp.approx.ftz.f32", "sin.approx.f32", "tanh.approx.f32")
)
_INTEGERS = frozenset(f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64))


def find_sunk_loads(code: Sequence[Instruction], blocks: Sequence[BasicBlock]) -> dict[int, int]:
    """Return the ``id`` of the last store by the ``id`` of each load that ptxas moves next to it."""
    readers = Counter(name for instruction in code for name in instruction.reads)
    read_once = {name for name, count in readers.items() if count == 1}
    changed = {name for instruction in code if not _sets_constant(instruction) for name in instruction.writes}
    constants = {name for instruction in code for name in instruction.writes} - changed
    sunk: dict[int, int] = {}
    for block in blocks:
        instructions = list(code[block.start : block.stop])
        if instructions and block.end is End.EXIT and instructions[-1].guard is None:
            instructions.pop()
        ends = block.end is End.EXIT or block.successors == [len(blocks) - 1]
        if ends and instructions and instructions[-1].opcode in _STORES and instructions[-1].guard is not None:
            store = instructions.pop()
            if _has_branch(instructions):
                continue
            sunk |= {id(load): id(store) for load in _iter_loads_of(store, instructions, read_once, constants)}
    return sunk


def _has_branch(earlier: Sequence[Instruction]) -> bool:
    """Tell if ptxas makes a branch of guarded stores to global memory: of two in sequence, or of an atomic."""
    writes = [i if i.guard and i.opcode in _STORES and "global" in i.modifiers else None for i in earlier]
    has_atomic = any(write is not None and write.opcode != "st" for write in writes)
    return has_atomic or any(first and second and first.guard == second.guard for first, second in pairwise(writes))


def _sets_constant(instruction: Instruction) -> bool:
    return instruction.opcode == "mov" and bool(instruction.writes) and isinstance(instruction.operands[-1], Immediate)


def _iter_loads_of(
    store: Instruction, earlier: Sequence[Instruction], read_once: Set[str], constants: Set[str]
) -> Iterator[Instruction]:
    """Yield the loads whose values only a store uses; ``earlier`` are the instructions before the store."""
    only_stored = _list_registers(store.operands[-1:]) & read_once
    for instruction in reversed(earlier):
        if breaks_loads(instruction):
            return
        if instruction.guard is not None or not instruction.writes or not instruction.writes <= only_stored:
            continue
        if instruction.opcode == "ld":
            yield instruction
        elif _is_moved(instruction, constants):
            only_stored |= _list_registers(instruction.operands[1:]) & read_once


def _is_moved(instruction: Instruction, constants: Set[str]) -> bool:
    """Tell if ptxas moves an operation: one machine instruction that reads one register.

    In machine code, a constant 0 is a register, and so is the upper half of a widened integer.
    """
    leaves = [leaf for operand in instruction.operands[1:] for leaf in iter_leaves(operand)]
    registers = [leaf for leaf in leaves if isinstance(leaf, Register) and leaf.name not in constants]
    has_zero = any(isinstance(leaf, Immediate) and leaf.value == 0 for leaf in leaves)
    kinds = instruction.modifiers[-2:]
    is_widened = instruction.opcode == "cvt" and _INTEGERS.issuperset(kinds) and kinds[:1] in (("u64",), ("s64",))
    is_single = instruction.opcode in _MOVED or instruction.name in _MOVED_NAMES
    return is_single and len(registers) == 1 and not has_zero and not is_widened


def _list_registers(operands: Sequence[Operand]) -> set[str]:
    return {leaf.name for operand in operands for leaf in iter_leaves(operand) if isinstance(leaf, Register)}
