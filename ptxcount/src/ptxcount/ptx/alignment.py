"""Alignment of registers at compile time: their remainder modulo 16, or a smaller power of two.

ptxas merges accesses only if it can prove alignment. It tracks a remainder only through copies and additions of
literals. For all other results, and at control-flow joins, it tracks only the largest power of two that divides the
value (nvcc 13.0.88, 29 kernels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from .program import Immediate, Instruction, Operand, Register, Symbol

#: The largest modulus: the width of the widest access in bytes.
_MAX_MODULUS = 16


class Residue(NamedTuple):
    """The remainder that all values of a register have modulo a power of two; modulus 1 if nothing is known."""

    modulus: int
    remainder: int

    def join(self, second: Residue) -> Residue:
        """Return the residue that holds for both residues: (16, 4) and (16, 12) -> (8, 4)."""
        return _make_residue(gcd(self.modulus, second.modulus, self.remainder - second.remainder), self.remainder)

    def drop_remainder(self) -> Residue:
        """Keep only the largest power of two that divides all values: (16, 12) -> (4, 0)."""
        return Residue(gcd(self.modulus, self.remainder), 0)

    def subtract(self, number: int) -> Residue:
        """Return the residue of the register minus a number."""
        return _make_residue(self.modulus, self.remainder - number)

    def align(self, size: int, offset: int) -> Residue:
        """Return the residue after a vector access of ``size`` bytes at register + offset.

        The access must be aligned to its size. So if the offset is a multiple of ``size``, the register is, too.
        """
        return Residue(size, 0) if size > self.modulus and not offset % size else self


_UNKNOWN, _ZERO = Residue(1, 0), Residue(_MAX_MODULUS, 0)


def _make_residue(modulus: int, remainder: int) -> Residue:
    """Reduce the modulus to a power of two, at most 16, and the remainder to less than that: (24, 9) -> (8, 1)."""
    modulus = gcd(modulus, _MAX_MODULUS)
    return Residue(modulus, remainder % modulus)


def _multiply(a: Residue, b: Residue) -> Residue:
    return _make_residue(
        gcd(a.modulus * b.modulus, a.modulus * b.remainder, b.modulus * a.remainder), a.remainder * b.remainder
    )


def _add(a: Residue, b: Residue) -> Residue:
    return _make_residue(gcd(a.modulus, b.modulus), a.remainder + b.remainder)


def _mask(a: Residue, b: Residue) -> Residue:
    """Return the residue of ``a & b``: low bits that are known in both, or zero in a fully known ``b``."""
    if b.modulus < _MAX_MODULUS:
        return Residue(min(a.modulus, b.modulus), a.remainder & b.remainder & min(a.modulus, b.modulus) - 1)
    modulus = a.modulus
    while modulus < _MAX_MODULUS and not b.remainder & modulus:
        modulus *= 2
    return _make_residue(modulus, a.remainder & b.remainder)


def _insert_bits(a: Residue, b: Residue, place: Residue, count: Residue) -> Residue:
    """Return the residue of ``bfi``: that of ``b`` if the bits go to a known place from bit 4 on, else unknown."""
    return b if place.modulus == _MAX_MODULUS and place.remainder >= 4 else _UNKNOWN


#: Functions by opcode: they map the residues of the operands to the residue of the result.
_RULES: dict[str, Callable[..., Residue]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "add": _add,
    "sub": lambda a, b: _make_residue(gcd(a.modulus, b.modulus), a.remainder - b.remainder),
    "neg": lambda a: _make_residue(a.modulus, -a.remainder),
    "mul": _multiply,
    "mul24": _multiply,
    "rem": lambda a, b: _make_residue(gcd(a.modulus, b.modulus, b.remainder), a.remainder),
    "bfi": _insert_bits,
    "mad": lambda a, b, c: _add(_multiply(a, b), c),
    "and": _mask,
    "or": lambda a, b: _make_residue(min(a.modulus, b.modulus), a.remainder | b.remainder),
    "xor": lambda a, b: _make_residue(min(a.modulus, b.modulus), a.remainder ^ b.remainder),
    "selp": lambda a, b, p: a.join(b),
}


def find_residues(code: Sequence[Instruction], addresses: Mapping[str, int]) -> Callable[[Operand | None], Residue]:
    """Return a function that gives the residue of an operand, valid on every control-flow path.

    ``addresses`` maps the names of variables to their byte addresses.
    """
    residues: dict[str, Residue] = {}

    def find_residue(operand: Operand | None) -> Residue | None:
        if isinstance(operand, Register):
            return residues.get(operand.name)
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return _make_residue(_MAX_MODULUS, operand.value)
        if isinstance(operand, Symbol) and operand.name in addresses:
            return _make_residue(_MAX_MODULUS, addresses[operand.name])
        return _UNKNOWN

    for instruction in code:  # registers in vectors and pairs, and further results, are unknown
        target = instruction.operands[0] if instruction.operands else None
        residues |= dict.fromkeys(instruction.writes - {getattr(target, "name", "")}, _UNKNOWN)
    write_counts = Counter(name for instruction in code for name in instruction.writes)
    changed = True
    while changed:  # fixed point: residues only get weaker
        changed = False
        for instruction in code:
            target = instruction.operands[0] if instruction.operands else None
            if not isinstance(target, Register) or residues.get(target.name) == _UNKNOWN:
                continue
            residue = _derive_residue(instruction, find_residue)
            if residue is None:
                continue
            if write_counts[target.name] > 1 or not _keeps_remainder(instruction):
                residue = residue.drop_remainder()
            earlier = residues.get(target.name)
            if earlier is not None:
                residue = earlier.join(residue)
            if residue != earlier:
                residues[target.name], changed = residue, True
    return lambda operand: find_residue(operand) or _UNKNOWN


def _derive_residue(instruction: Instruction, find_residue: Callable[[Operand], Residue | None]) -> Residue | None:
    """Derive the residue of an instruction's result; None while an operand has no residue."""
    operands = [find_residue(operand) for operand in instruction.operands[1:]]
    if instruction.opcode == "shl" and len(operands) == 2 and operands[0]:
        a, amount = operands[0], instruction.operands[2]
        if isinstance(amount, Immediate):
            return _make_residue(a.modulus << int(amount.value), a.remainder << int(amount.value))
        return a.join(_ZERO)  # shifted by an unknown count: the operand's power of two still divides the result
    rule = _RULES.get(instruction.opcode)
    if rule is None or "hi" in instruction.modifiers or rule.__code__.co_argcount != len(operands):
        return _UNKNOWN
    if instruction.opcode == "selp":
        operands[2] = _UNKNOWN
    return rule(*operands) if all(operands) else None


def _keeps_remainder(instruction: Instruction) -> bool:
    """Tell if ptxas tracks the result's remainder: for copies, and for additions of literals, which ptxas may fold."""
    adds = instruction.opcode in ("add", "sub") and isinstance(instruction.operands[-1], Immediate)
    return adds or instruction.opcode in ("mov", "cvt", "cvta")
