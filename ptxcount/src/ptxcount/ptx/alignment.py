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
    """Return the residue of ``a & b``: low bits that are known in both; of a fully known ``b``, zeros are enough."""
    if b.modulus < _MAX_MODULUS:
        return Residue(min(a.modulus, b.modulus), a.remainder & b.remainder & min(a.modulus, b.modulus) - 1)
    modulus = a.modulus
    while modulus < _MAX_MODULUS and not b.remainder & modulus:
        modulus *= 2
    return _make_residue(modulus, a.remainder & b.remainder)


def _insert_bits(a: Residue, b: Residue, place: Residue, count: Residue) -> Residue:
    """Return the residue of ``bfi``: that of ``b`` if the bits are inserted above the four lowest, else unknown."""
    return b if place.modulus == _MAX_MODULUS and place.remainder >= 4 else _UNKNOWN


#: Functions from the residues of the operands to the residue of the result, by number of operands and opcode.
_RULES: dict[int, dict[str, Callable[..., Residue]]] = {
    1: {**dict.fromkeys(("mov", "cvt", "cvta"), lambda a: a), "neg": lambda a: _make_residue(a.modulus, -a.remainder)},
    2: {
        "add": _add,
        "sub": lambda a, b: _make_residue(gcd(a.modulus, b.modulus), a.remainder - b.remainder),
        "mul": _multiply,
        "mul24": _multiply,
        "rem": lambda a, b: _make_residue(gcd(a.modulus, b.modulus, b.remainder), a.remainder),
        "and": _mask,
        "or": lambda a, b: _make_residue(min(a.modulus, b.modulus), a.remainder | b.remainder),
        "xor": lambda a, b: _make_residue(min(a.modulus, b.modulus), a.remainder ^ b.remainder),
    },
    3: {"mad": lambda a, b, c: _add(_multiply(a, b), c), "selp": lambda a, b, predicate: a.join(b)},
    4: {"bfi": _insert_bits},
}


def find_residues(code: Sequence[Instruction], addresses: Mapping[str, int]) -> Callable[[Operand | None], Residue]:
    """Return a function that gives the residue of an operand, valid on every control-flow path.

    ``addresses`` maps the names of variables to their byte addresses.
    """
    analysis = _ResidueAnalysis(code, addresses)
    has_changed = True
    while has_changed:  # residues only get weaker, so this ends
        changes = [analysis.update(instruction) for instruction in code]
        has_changed = any(changes)
    return lambda operand: analysis.find_residue(operand) or _UNKNOWN


class _ResidueAnalysis:
    """The residues of registers, by name, that hold for the instructions so far."""

    def __init__(self, code: Sequence[Instruction], addresses: Mapping[str, int]) -> None:
        self._addresses = addresses
        self._write_counts = Counter(name for instruction in code for name in instruction.writes)
        self._residues: dict[str, Residue] = {}
        for instruction in code:  # registers in vectors and pairs, and further results, are unknown
            target = _find_target(instruction)
            others = instruction.writes - {target.name} if target else instruction.writes
            self._residues |= dict.fromkeys(others, _UNKNOWN)

    def find_residue(self, operand: Operand | None) -> Residue | None:
        """Return the residue of an operand, that of 0 for no operand; None for a register that has none yet."""
        if operand is None:
            return _ZERO
        if isinstance(operand, Register):
            return self._residues.get(operand.name)
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return _make_residue(_MAX_MODULUS, operand.value)
        if isinstance(operand, Symbol) and operand.name in self._addresses:
            return _make_residue(_MAX_MODULUS, self._addresses[operand.name])
        return _UNKNOWN

    def update(self, instruction: Instruction) -> bool:
        """Join the residue of an instruction's result to the register's; tell if this changes it."""
        target = _find_target(instruction)
        if target is None or self._residues.get(target.name) == _UNKNOWN:
            return False
        residue = self._derive_residue(instruction)
        if residue is None:
            return False
        if self._write_counts[target.name] > 1 or not _keeps_remainder(instruction):
            residue = Residue(
                gcd(*residue), 0
            )  # only the largest power of two that divides all values: (4, 0) of (16, 12)
        earlier = self._residues.get(target.name)
        if earlier is not None:
            residue = earlier.join(residue)
        self._residues[target.name] = residue
        return residue != earlier

    def _derive_residue(self, instruction: Instruction) -> Residue | None:
        """Derive the residue of an instruction's result; None while an operand has no residue."""
        residues = [self.find_residue(operand) for operand in instruction.operands[1:]]
        if instruction.opcode == "shl" and len(residues) == 2 and residues[0]:
            a, amount = residues[0], instruction.operands[2]
            if isinstance(amount, Immediate) and isinstance(amount.value, int):
                count = min(amount.value % 2**32, 4)  # from 4 on, 16 divides the result
                return _make_residue(a.modulus << count, a.remainder << count)
            return a.join(_ZERO)  # shifted by an unknown count: the operand's power of two still divides the result
        rule = _RULES.get(len(residues), {}).get(instruction.opcode)
        if rule is None or "hi" in instruction.modifiers:
            return _UNKNOWN
        if instruction.opcode == "selp":
            residues[2] = _UNKNOWN  # of the predicate
        return None if None in residues else rule(*residues)


def _find_target(instruction: Instruction) -> Register | None:
    """Return the first operand if it is a register, even if an instruction such as ``bar`` only reads it; else None."""
    target = instruction.operands[0] if instruction.operands else None
    return target if isinstance(target, Register) else None


def _keeps_remainder(instruction: Instruction) -> bool:
    """Tell if ptxas tracks the result's remainder: for moves, conversions, and ``add`` or ``sub`` of a literal."""
    adds = instruction.opcode in ("add", "sub") and isinstance(instruction.operands[-1], Immediate)
    return adds or instruction.opcode in ("mov", "cvt", "cvta")
