"""The functions that a kernel may call: their code, who calls whom, and whose address stands somewhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from .program import Address, Entry, Group, Instruction, Operand, Program, Register, Symbol


class Functions:
    """The functions that a kernel may call, parsed once."""

    def __init__(self, program: Program, entry: Entry) -> None:
        self.named, self._entry, self._variables = program.functions, entry, program.variables
        self._bodies: dict[str, Entry] = {}

    def body(self, name: str) -> Entry:
        """The code of a function."""
        if name not in self._bodies:
            self._bodies[name] = self.named[name].body()
        return self._bodies[name]

    @cached_property
    def addressed(self) -> list[str]:
        """Those whose address stands somewhere."""
        found = {name for variable in self._variables.values() for _, name, _ in variable.addresses}
        for body in (self._entry, *map(self.body, self.named)):
            found |= {name for one in body.instructions if one.opcode == "mov" for name in symbols(Group(one.operands))}
        return [name for name in self.named if name in found]

    def like(self, results: int, given: int) -> list[str]:
        """Those of them with so many results and parameters."""
        counts = {name: (len(each.results), len(each.parameters)) for name, each in self.named.items()}
        return [name for name in self.addressed if counts[name] == (results, given)]


def parts(call: Instruction) -> tuple[list[str], Operand | None, list[str]]:
    """The results of a call, what is called, and what it is given; what is no variable has no name."""
    operands = list(call.operands)
    results = symbols(operands.pop(0)) if operands and isinstance(operands[0], Group) else []
    return results, operands[0] if operands else None, symbols(operands[1]) if len(operands) > 1 else []


def symbols(operand: Operand | None) -> list[str]:
    """The names in a list of arguments, or the one that stands there; what is no variable has none."""
    if isinstance(operand, Symbol):
        return [operand.name]
    return [each.name if isinstance(each, Symbol) else "" for each in getattr(operand, "items", ())]


def registers_in(operands: Iterable[Operand | None]) -> list[str]:
    """The names of the registers in operands, also those of addresses."""
    found: list[str] = []
    for each in operands:
        base = each.base if isinstance(each, Address) else each
        if isinstance(base, Register):
            found.append(base.name)
        elif isinstance(base, Group):
            found += registers_in(base.items)
    return found
