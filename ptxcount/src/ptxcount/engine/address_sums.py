"""Addresses as sums of operands and a constant offset. To ptxas, the order of operands is irrelevant (nvcc 13.0.88)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..ptx.flow import find_reachable
from ..ptx.program import TYPES, Immediate, Instruction, Operand, Special

#: Instructions whose result depends only on their operands.
_PURE = frozenset(("mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "cvta", "bfe", "selp"))
#: Prefixes of special registers that change while a thread runs.
_CLOCKS = ("%clock", "%globaltimer")
#: Number of source operands of each instruction whose result may be a sum.
_OPERANDS = {"mov": 1, "add": 2, "sub": 2, "mul": 2, "shl": 2, "mad": 3}
_INTEGERS = frozenset(("s32", "u32", "b32", "s64", "u64", "b64"))


class AddressSum(NamedTuple):
    """A sum of operands, each times a factor, and a constant offset."""

    terms: frozenset[tuple[Operand, int]]
    offset: int

    def add(self, other: AddressSum, factor: int, bits: int) -> AddressSum:
        """Add another sum times a factor; the offset wraps to a signed integer of ``bits`` bits."""
        counts = Counter(dict(self.terms))
        for operand, number in other.terms:
            counts[operand] += number * factor
        half = 1 << bits - 1
        offset = (self.offset + other.offset * factor + half) % (2 * half) - half
        return AddressSum(frozenset(item for item in counts.items() if item[1]), offset)


class TracedSums(NamedTuple):
    """The traced sums of a kernel's registers."""

    #: Sum of each traced register, by name.
    by_name: dict[str, AddressSum]
    #: First register with these terms, and the offset of its sum, by the terms; not for a register itself.
    roots: dict[frozenset[tuple[Operand, int]], tuple[Operand, int]]

    def find_sum(self, operand: Operand | None) -> AddressSum:
        """Return the sum that an operand equals; None, the base of a constant address, is 0."""
        if operand is None:
            return _ZERO
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return AddressSum(frozenset(), operand.value)
        return self.by_name.get(getattr(operand, "name", ""), AddressSum(frozenset(((operand, 1),)), 0))

    def find_root(self, operand: Operand | None) -> tuple[Operand | None, int]:
        """Return the register or variable from which ptxas computes an address, and the offset that it includes."""
        terms = self.find_sum(operand).terms
        if terms in self.roots:
            return self.roots[terms]
        return (next(iter(terms))[0] if terms else operand), 0


_ZERO = AddressSum(frozenset(), 0)


def trace_sums(code: Sequence[Instruction], names: Iterable[str]) -> TracedSums:
    """Trace the registers with these names to sums.

    A register is traced if only one instruction, pure and unguarded, writes it, and at most one writes each operand.
    """
    writes = Counter(name for instruction in code for name in instruction.writes)
    definitions: dict[str, Instruction] = {}
    for instruction in filter(_is_traceable, code):
        (name,) = instruction.writes
        if writes[name] == 1:
            definitions[name] = instruction
    needed = find_reachable(lambda name: definitions[name].reads if name in definitions else (), names)
    # Value numbering: the first register with each value, by the instruction's name and the sums of its operands.
    traced, values = TracedSums({}, {}), dict[tuple[object, ...], Operand]()
    for name, instruction in definitions.items():
        if name in needed and all(writes[read_name] < 2 for read_name in instruction.reads):
            target, *operands = instruction.operands
            parts = [traced.find_sum(operand) for operand in operands]
            value = values.setdefault((instruction.name, *parts), target)
            total = _add_parts(instruction, parts) or AddressSum(frozenset(((value, 1),)), 0)
            traced.by_name[name] = total
            if len(total.terms) > 1 or any(factor != 1 for _, factor in total.terms):
                traced.roots.setdefault(total.terms, (target, total.offset))
    return traced


def _is_traceable(instruction: Instruction) -> bool:
    if any(isinstance(operand, Special) and operand.name.startswith(_CLOCKS) for operand in instruction.operands):
        return False
    return instruction.opcode in _PURE and instruction.guard is None and len(instruction.writes) == 1


def _add_parts(instruction: Instruction, parts: Sequence[AddressSum]) -> AddressSum | None:
    """Return the sum that an instruction computes from the sums of its operands; None if the result is no sum."""
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    is_sum = kind in _INTEGERS and instruction.modifiers[:-1] in ((), ("lo",))
    if not is_sum or len(parts) != _OPERANDS.get(instruction.opcode):
        return None
    if instruction.opcode == "mov":
        return parts[0]
    bits, constant = TYPES[kind].bits, None if parts[1].terms else parts[1].offset
    if instruction.opcode == "add":
        return parts[0].add(parts[1], 1, bits)
    if constant is None:  # of two registers, only ``add`` computes a sum
        return None
    if instruction.opcode == "sub":
        return parts[0].add(parts[1], -1, bits)
    addend = parts[2] if instruction.opcode == "mad" else _ZERO
    factor = constant
    if instruction.opcode == "shl":
        factor = 1 << constant if 0 <= constant < bits else 0
    return addend.add(parts[0], factor, bits)
