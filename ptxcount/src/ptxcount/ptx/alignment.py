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

    def align(self, size: int, offset: int) -> Residue:
        """Return what ptxas knows of a register that a wide access of a size lies behind: offsets that fit it count."""
        return Residue(size, 0) if size > self.modulus and not offset % size else self


_UNKNOWN, _ZERO = Residue(1, 0), Residue(_MOST, 0)


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


def _without_carries(a: Residue, b: Residue) -> Residue:
    """The lowest bits of a sum without carries."""
    return _residue(min(a.modulus, b.modulus), a.rest ^ b.rest)


def _remainder(a: Residue, b: Residue) -> Residue:
    """A number less a multiple of another."""
    return _residue(gcd(a.modulus, b.modulus, b.rest), a.rest)


def _inserted(a: Residue, b: Residue, place: Residue, count: Residue) -> Residue:
    """The bits of the second operand below those that are inserted: a place of 4 and more leaves all that counts."""
    return b if place.modulus == _MOST and place.rest >= 4 else _UNKNOWN


#: What instructions make of what is known of their operands.
_RULES: dict[str, Callable[..., Residue]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": _sum,
    "sub": lambda a, b: _residue(gcd(a.modulus, b.modulus), a.rest - b.rest),
    "neg": lambda a: _residue(a.modulus, -a.rest),
    "mul": _product,
    "mul24": _product,
    "rem": _remainder,
    "bfi": _inserted,
    "mad": lambda a, b, c: _sum(_product(a, b), c),
    "and": _masked,
    "or": lambda a, b: _residue(min(a.modulus, b.modulus), a.rest | b.rest),
    "xor": _without_carries,
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

    for one in code:  # vectors, pairs and what is written beside a result
        target = one.operands[0] if one.operands else None
        known |= dict.fromkeys(one.writes - {getattr(target, "name", "")}, _UNKNOWN)
    changed = True
    while changed:  # what is known only becomes less
        changed = False
        for one in code:
            target = one.operands[0] if one.operands else None
            if isinstance(target, Register) and known.get(target.name) != _UNKNOWN:
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
    if one.opcode == "shl" and len(given) == 2 and given[0]:
        a, by = given[0], one.operands[2]
        places = int(by.value) if isinstance(by, Immediate) else 0
        # By an unknown number of places: a multiple of what the number is a multiple of.
        return _residue(a.modulus << places, a.rest << places) if isinstance(by, Immediate) else a.joined(_ZERO)
    rule = _RULES.get(one.opcode)
    if rule is None or "hi" in one.modifiers or rule.__code__.co_argcount != len(given):
        return _UNKNOWN
    if one.opcode == "selp":
        given[2] = _UNKNOWN
    return rule(*given) if all(given) else None
