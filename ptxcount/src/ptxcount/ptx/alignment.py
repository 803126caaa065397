"""Alignment of registers before a launch: their remainder modulo 16, or a smaller power of two.

ptxas makes one access of several only where it can show that it is aligned. It keeps a remainder only where it adds a
literal; of all other results, and where ways meet, it keeps what they are a multiple of (nvcc 13.0.88, 29 kernels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from .program import Immediate, Instruction, Operand, Register, Symbol

#: The largest modulus: the bytes of the widest access.
_MAX_MODULUS = 16


class Residue(NamedTuple):
    """All values of a register have this remainder modulo a power of two."""

    modulus: int
    remainder: int

    def join(self, second: Residue) -> Residue:
        """Return the residue of a register that has one of two."""
        return _make_residue(gcd(self.modulus, second.modulus, self.remainder - second.remainder), self.remainder)

    def drop_remainder(self) -> Residue:
        """Return the power of two that all values are surely a multiple of."""
        return Residue(gcd(self.modulus, self.remainder), 0)

    def subtract(self, number: int) -> Residue:
        """Return the residue of a register that is less by a number."""
        return _make_residue(self.modulus, self.remainder - number)

    def align(self, size: int, offset: int) -> Residue:
        """Return what ptxas knows of a register that a wide access of a size lies behind: offsets that fit it count."""
        return Residue(size, 0) if size > self.modulus and not offset % size else self


_UNKNOWN, _ZERO = Residue(1, 0), Residue(_MAX_MODULUS, 0)


def _make_residue(modulus: int, remainder: int) -> Residue:
    modulus = gcd(modulus, _MAX_MODULUS)
    return Residue(modulus, remainder % modulus)


def _multiply(a: Residue, b: Residue) -> Residue:
    return _make_residue(
        gcd(a.modulus * b.modulus, a.modulus * b.remainder, b.modulus * a.remainder), a.remainder * b.remainder
    )


def _add(a: Residue, b: Residue) -> Residue:
    return _make_residue(gcd(a.modulus, b.modulus), a.remainder + b.remainder)


def _mask(a: Residue, b: Residue) -> Residue:
    """Combine by a mask: the lowest bits are known of both, and further ones where the mask has zeros."""
    if b.modulus < _MAX_MODULUS:
        return Residue(min(a.modulus, b.modulus), a.remainder & b.remainder & min(a.modulus, b.modulus) - 1)
    modulus = a.modulus
    while modulus < _MAX_MODULUS and not b.remainder & modulus:
        modulus *= 2
    return _make_residue(modulus, a.remainder & b.remainder)


def _add_without_carries(a: Residue, b: Residue) -> Residue:
    """Add the lowest bits without carries."""
    return _make_residue(min(a.modulus, b.modulus), a.remainder ^ b.remainder)


def _reduce(a: Residue, b: Residue) -> Residue:
    """Subtract a multiple of another number."""
    return _make_residue(gcd(a.modulus, b.modulus, b.remainder), a.remainder)


def _insert_bits(a: Residue, b: Residue, place: Residue, count: Residue) -> Residue:
    """Return the bits of the second operand below the inserted ones: a place of 4 and more leaves all that count."""
    return b if place.modulus == _MAX_MODULUS and place.remainder >= 4 else _UNKNOWN


#: Residue of a result from those of its operands, by instruction.
_RULES: dict[str, Callable[..., Residue]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": _add,
    "sub": lambda a, b: _make_residue(gcd(a.modulus, b.modulus), a.remainder - b.remainder),
    "neg": lambda a: _make_residue(a.modulus, -a.remainder),
    "mul": _multiply,
    "mul24": _multiply,
    "rem": _reduce,
    "bfi": _insert_bits,
    "mad": lambda a, b, c: _add(_multiply(a, b), c),
    "and": _mask,
    "or": lambda a, b: _make_residue(min(a.modulus, b.modulus), a.remainder | b.remainder),
    "xor": _add_without_carries,
    "selp": lambda a, b, p: a.join(b),
}


def find_residues(code: Sequence[Instruction], addresses: Mapping[str, int]) -> Callable[[Operand | None], Residue]:
    """Return the residue of each operand, on any way of the threads; variables lie at these addresses."""
    known: dict[str, Residue] = {}

    def find_residue(operand: Operand | None) -> Residue | None:
        if isinstance(operand, Register):
            return known.get(operand.name)
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return _make_residue(_MAX_MODULUS, operand.value)
        if isinstance(operand, Symbol) and operand.name in addresses:
            return _make_residue(_MAX_MODULUS, addresses[operand.name])
        return _UNKNOWN

    for instruction in code:  # vectors, pairs and what is written beside a result
        target = instruction.operands[0] if instruction.operands else None
        known |= dict.fromkeys(instruction.writes - {getattr(target, "name", "")}, _UNKNOWN)
    writes = Counter(name for instruction in code for name in instruction.writes)
    changed = True
    while changed:  # what is known only becomes less
        changed = False
        for instruction in code:
            target = instruction.operands[0] if instruction.operands else None
            if isinstance(target, Register) and known.get(target.name) != _UNKNOWN:
                residue = _derive_residue(instruction, find_residue)
                if residue is not None and (writes[target.name] > 1 or not _is_foldable(instruction)):
                    residue = residue.drop_remainder()
                earlier = known.get(target.name)
                if residue is not None and earlier is not None:
                    residue = earlier.join(residue)
                if residue is not None and residue != earlier:
                    known[target.name], changed = residue, True
    return lambda operand: find_residue(operand) or _UNKNOWN


def _derive_residue(instruction: Instruction, find_residue: Callable[[Operand], Residue | None]) -> Residue | None:
    """Derive the residue of a result; None as long as an operand has none."""
    operands = [find_residue(operand) for operand in instruction.operands[1:]]
    if instruction.opcode == "shl" and len(operands) == 2 and operands[0]:
        a, amount = operands[0], instruction.operands[2]
        places = int(amount.value) if isinstance(amount, Immediate) else 0
        # By an unknown number of places: a multiple of what the number is a multiple of.
        return (
            _make_residue(a.modulus << places, a.remainder << places)
            if isinstance(amount, Immediate)
            else a.join(_ZERO)
        )
    rule = _RULES.get(instruction.opcode)
    if rule is None or "hi" in instruction.modifiers or rule.__code__.co_argcount != len(operands):
        return _UNKNOWN
    if instruction.opcode == "selp":
        operands[2] = _UNKNOWN
    return rule(*operands) if all(operands) else None


def _is_foldable(instruction: Instruction) -> bool:
    """Tell if ptxas moves what is added into the offsets of accesses, so that it keeps the remainder."""
    adds = instruction.opcode in ("add", "sub") and isinstance(instruction.operands[-1], Immediate)
    return adds or instruction.opcode in ("mov", "cvt", "cvta")
