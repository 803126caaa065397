"""What is known of registers before a launch: their rest modulo 16, or a smaller power of two.

ptxas makes one access of several only where it can show that it is aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from .program import Immediate, Instruction, Operand, Register, Symbol

#: The largest modulus: the bytes of the widest access.
_MOST = 16


class Residue(NamedTuple):
    """All values of a register have this rest modulo a power of two."""

    modulus: int
    rest: int

    def joined(self, other: Residue) -> Residue:
        """What is known of a register that has one or the other."""
        return _residue(gcd(self.modulus, other.modulus, self.rest - other.rest), self.rest)


_UNKNOWN = Residue(1, 0)


def _residue(modulus: int, rest: int) -> Residue:
    modulus = gcd(modulus, _MOST)
    return Residue(modulus, rest % modulus)


def _product(a: Residue, b: Residue) -> Residue:
    return _residue(gcd(a.modulus * b.modulus, a.modulus * b.rest, b.modulus * a.rest), a.rest * b.rest)


def _sum(a: Residue, b: Residue) -> Residue:
    return _residue(gcd(a.modulus, b.modulus), a.rest + b.rest)


def _masked(a: Residue, b: Residue) -> Residue:
    """The lowest bits are known of both, and further ones where a mask has zeros."""
    if b.modulus < _MOST:
        return Residue(min(a.modulus, b.modulus), a.rest & b.rest & min(a.modulus, b.modulus) - 1)
    modulus = a.modulus
    while modulus < _MOST and not b.rest & modulus:
        modulus *= 2
    return _residue(modulus, a.rest & b.rest)


#: What instructions make of what is known of their operands.
_RULES: dict[str, Callable[..., Residue]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": _sum,
    "sub": lambda a, b: _residue(gcd(a.modulus, b.modulus), a.rest - b.rest),
    "mul": _product,
    "mad": lambda a, b, c: _sum(_product(a, b), c),
    "and": _masked,
    "or": lambda a, b: _residue(min(a.modulus, b.modulus), a.rest | b.rest),
    "selp": lambda a, b, p: a.joined(b),
}


def residues(code: Sequence[Instruction], addresses: Mapping[str, int]) -> Callable[[Operand | None], Residue]:
    """What is known of operands, whatever way the threads come; variables lie at these addresses."""
    known: dict[str, Residue] = {}

    def of(operand: Operand | None) -> Residue | None:
        if isinstance(operand, Register):
            return known.get(operand.name)
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return _residue(_MOST, operand.value)
        if isinstance(operand, Symbol) and operand.name in addresses:
            return _residue(_MOST, addresses[operand.name])
        return _UNKNOWN

    changed = True
    while changed:  # what is known only becomes less
        changed = False
        for one in code:
            target = one.operands[0] if one.operands else None
            if isinstance(target, Register):
                found = _made(one, of)
                before = known.get(target.name)
                if found is not None and before is not None:
                    found = before.joined(found)
                if found is not None and found != before:
                    known[target.name], changed = found, True
    return lambda operand: of(operand) or _UNKNOWN


def _made(one: Instruction, of: Callable[[Operand], Residue | None]) -> Residue | None:
    """What is known of a result; None as long as an operand has none."""
    given = [of(each) for each in one.operands[1:]]
    if one.opcode == "shl" and len(given) == 2 and isinstance(one.operands[2], Immediate):
        a, places = given[0], int(one.operands[2].value)
        return a and _residue(a.modulus << places, a.rest << places)
    rule = _RULES.get(one.opcode)
    if rule is None or "hi" in one.modifiers or rule.__code__.co_argcount != len(given):
        return _UNKNOWN
    if one.opcode == "selp":
        given[2] = _UNKNOWN
    return rule(*given) if all(given) else None
