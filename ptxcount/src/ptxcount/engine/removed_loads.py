"""Weak loads that ptxas removes (machine code of nvcc 13.0.88 for sm_90).

Nothing reads the loaded value, or an earlier load of the basic block has it. Compilers remove such loads themselves,
but not from inline assembly, as which Triton writes all loads. ptxas also removes loads that are counted: those of a
value that an earlier basic block has, or that is part of a wider one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from ..machine.polls import is_strong
from ..ptx.flow import BasicBlock
from ..ptx.program import Address, Immediate, Instruction, Operand, Register
from .address_sums import AddressSum, TracedSums, trace_sums
from .shared_accesses import breaks_loads, is_called

#: Loads of these types extend the sign: the other types of their sizes differ.
_SIGNED = ("s8", "s16")


class _Source(NamedTuple):
    """Source of a load: modifiers, address, and the cache eviction policy: a register, or the known policy in it."""

    modifiers: tuple[str, ...]
    address: AddressSum
    policy: object


def find_removed_loads(code: Sequence[Instruction], blocks: Sequence[BasicBlock]) -> dict[int, int]:
    """Return the places of loads that ptxas removes, and that of the load which each repeats: itself if it is unread.

    Repeated loads are found in global memory only.
    """
    read = {name for instruction in code for name in instruction.reads}
    loads = [place for place, load in enumerate(code) if load.opcode == "ld" and len(load.operands) == 2]
    weak = [place for place in loads if code[place].writes and not is_strong(code[place])]
    removed = {place: place for place in weak if read.isdisjoint(code[place].writes)}
    sources, always = _find_sources(code, [place for place in weak if place not in removed]), _find_true_guards(code)
    for block in blocks:
        removed |= _find_repeated(code, block, sources, always)
    return removed


def _find_sources(code: Sequence[Instruction], loads: Sequence[int]) -> dict[int, _Source]:
    """Return the source of each load of global memory, by its place; without loads whose modifiers no other has."""
    modifiers = {place: _normalize(code[place]) for place in loads if "global" in code[place].modifiers}
    times = Counter(modifiers.values())
    operands = {place: code[place].operands[1] for place, names in modifiers.items() if times[names] > 1}
    addresses = {place: operand for place, operand in operands.items() if isinstance(operand, Address)}
    bases = [address.base for address in addresses.values()]
    sums = trace_sums(code, [base.name for base in bases if isinstance(base, Register)])
    known_policies = _find_policies(code)
    policies = {place: known_policies.get(code[place].policy, code[place].policy) for place in addresses}
    return {
        place: _Source(modifiers[place], _sum_address(address, sums), policies[place])
        for place, address in addresses.items()
    }


def _find_repeated(
    code: Sequence[Instruction], block: BasicBlock, sources: Mapping[int, _Source], always: Set[Operand | None]
) -> dict[int, int]:
    """Return the places of loads that repeat an earlier one in a basic block, by all threads that run this block.

    Return the place of the earlier one with each.
    """
    plain, constant, repeated = dict[_Source, int](), dict[_Source, int](), dict[int, int]()
    users = defaultdict[str, set[_Source]](set)
    for place in range(block.start, block.stop) if sources else ():
        instruction, source = code[place], sources.get(place)
        loaded_sources = constant if source and "nc" in source.modifiers else plain
        if source in loaded_sources:
            repeated[place] = loaded_sources[source]
        if breaks_loads(instruction, "global"):
            plain.clear()
        if is_called(instruction):
            constant.clear()
        if source and instruction.guard in always:
            loaded_sources.setdefault(source, place)
            for operand in (source.policy, *(operand for operand, _ in source.address.terms)):
                users[getattr(operand, "name", "")].add(source)
        for name in instruction.writes & users.keys():
            for changed in users.pop(name):
                plain.pop(changed, None)
                constant.pop(changed, None)
    return repeated


def _sum_address(address: Address, sums: TracedSums) -> AddressSum:
    total = sums.find_sum(address.base)
    return AddressSum(total.terms, total.offset + address.offset)


def _normalize(load: Instruction) -> tuple[str, ...]:
    """Return the modifiers without those that change nothing."""
    *names, kind = load.modifiers
    return (*(name for name in names if name != "weak"), kind if kind in _SIGNED else kind[1:])


def _find_policies(code: Sequence[Instruction]) -> dict[Operand | None, tuple[str, tuple[Operand, ...]]]:
    """Return the policy in each register that gets only one, as a ``createpolicy``'s name and operands.

    The register may also be set to a number, as Triton does before each ``createpolicy``.
    """
    values = defaultdict[Operand | None, set[tuple[str, tuple[Operand, ...]]]](set)
    for instruction in code:
        if instruction.writes and not (instruction.opcode == "mov" and isinstance(instruction.operands[-1], Immediate)):
            values[instruction.operands[0]].add((instruction.name, instruction.operands[1:]))
    policies = {register: next(iter(choices)) for register, choices in values.items() if len(choices) == 1}
    return {register: policy for register, policy in policies.items() if policy[0].startswith("createpolicy")}


def _find_true_guards(code: Sequence[Instruction]) -> set[Operand | None]:
    """Return the guards under which all threads execute: none, or one that only a move of a constant but 0 writes."""
    writes = Counter(name for instruction in code for name in instruction.writes)
    moves = [move for move in code if move.name == "mov.pred" and move.writes and move.guard is None]
    true_moves = [move for move in moves if isinstance(move.operands[-1], Immediate) and move.operands[-1].value]
    return {None, *(move.operands[0] for move in true_moves if all(writes[name] == 1 for name in move.writes))}
