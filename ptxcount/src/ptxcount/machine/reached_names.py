"""The parameters and variables from which a kernel computes the addresses of its accesses."""

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from ..ptx.program import Address, Instruction, Operand, Register, Symbol, iter_leaves
from .polls import is_strong_write

#: Name for memory at an address that was loaded from memory.
ANYTHING = "*"
#: Name for memory at an address that is computed from a multiple of a loaded value: an index, or a tagged address.
_SCALED = "*n"
#: Number of factors of a product, by opcode; other operands are added to it.
_FACTORS = {"shl": 1, "mul": 2, "mad": 2}


class ReachedNames(NamedTuple):
    """Names through which a kernel accesses memory: of parameters and variables, or of the arrays they point to."""

    loads: set[str]
    stores: set[str]
    #: Weak loads that end loops (`polls.find_scans`), and strong writes.
    scans: set[str]
    strong_writes: set[str]
    #: Loads with the modifier ``nc``; a scaled value that was loaded counts as an index here.
    noncoherent_loads: set[str]


def find_reached_names(instructions: Sequence[Instruction], scans: Set[int]) -> ReachedNames:
    """Find the parameters and variables from which addresses are computed; `ANYTHING` if an address is loaded.

    ``scans`` are the loads that `polls.find_scans` returns.
    """
    sources: dict[str, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for instruction in instructions:
            origins = _find_result_origins(instruction, sources) if instruction.writes else frozenset()
            for name in instruction.writes:
                known_origins = sources.get(name, frozenset())
                if not origins <= known_origins:
                    sources[name], changed = known_origins | origins, True
    accesses = [
        instruction
        for instruction in instructions
        if not {"shared", "local", "param", "const"} & {*instruction.modifiers}
    ]

    def find_names(is_kind: Callable[[Instruction], bool], scaled: str = ANYTHING) -> set[str]:
        operands = (operand for access in accesses if is_kind(access) for operand in access.operands)
        addresses = (operand for operand in operands if isinstance(operand, Address))
        names = set().union(*(_find_origins(address, sources) for address in addresses))
        return {scaled if name == _SCALED else name for name in names}

    return ReachedNames(
        loads=find_names(lambda access: access.opcode == "ld"),
        stores=find_names(lambda access: access.opcode == "st"),
        scans=find_names(lambda access: id(access) in scans),
        strong_writes=find_names(is_strong_write),
        noncoherent_loads=find_names(lambda access: "nc" in access.modifiers, _SCALED),
    )


def _find_result_origins(instruction: Instruction, sources: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the names from which an instruction computes; a loaded 64-bit value may be an address of `ANYTHING`."""
    if instruction.opcode in ("ld", "ldu", "atom") and "param" not in instruction.modifiers:
        return frozenset({ANYTHING} if {"u64", "b64", "s64"} & {*instruction.modifiers} else ())
    origins = [_find_origins(operand, sources) for operand in instruction.operands[1:]]
    count = _FACTORS.get(instruction.opcode, 0)
    factors = {_SCALED if name == ANYTHING else name for name in frozenset().union(*origins[:count])}
    return frozenset(factors).union(*origins[count:])


def _find_origins(operand: Operand, sources: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the names in an operand, and the names from which the operand's registers are computed."""
    symbols = frozenset(leaf.name for leaf in iter_leaves(operand) if isinstance(leaf, Symbol))
    registers = (leaf.name for leaf in iter_leaves(operand) if isinstance(leaf, Register))
    return symbols.union(*(sources.get(name, frozenset()) for name in registers))
